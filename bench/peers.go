package main

import "context"

func peerHello(ctx context.Context, cfg config, r *report) error   { return nil }
func peerObjects(ctx context.Context, cfg config, r *report) error { return nil }
func peerQueue(ctx context.Context, cfg config, r *report) error   { return nil }
