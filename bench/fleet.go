package main

import "context"

func benchFleet(ctx context.Context, cfg config, r *report) error { return nil }
