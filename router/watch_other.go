//go:build !linux

package router

import (
	"context"
	"time"
)

const halfClosed = 500 * time.Millisecond

// watcher does nothing where there is no epoll: a client that left is noticed by the next read or write.
type watcher struct{}

func newWatcher() (*watcher, error) { return &watcher{}, nil }

func (w *watcher) run(ctx context.Context) { <-ctx.Done() }

func (w *watcher) add(*conn) (remove func()) { return func() {} }
