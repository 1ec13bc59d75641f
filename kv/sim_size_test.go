package kv

const simDefault = 500
