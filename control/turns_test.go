package control

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// Evaluating hostile modules takes its whole limit each time; a tenant that queues many of them holds another up for one
// of them, not for all.
func TestTurnsAreFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns turns
		turns.init(2)
		end := make(chan struct{})
		var order []string
		work := func(tenant string) {
			done, err := turns.take(t.Context(), tenant)
			if err != nil {
				t.Error(err)
				return
			}
			order = append(order, tenant) // one at a time: only one is let go on at a time
			<-end
			done()
		}
		for range 6 {
			go work("greedy") // ends with the sixth receive of its end
			synctest.Wait()
		}
		if len(order) != 2 {
			t.Fatalf("%d are at work, there are 2 slots, and a tenant that is alone has both", len(order))
		}
		go work("other")
		synctest.Wait()
		left, leave := context.WithCancel(t.Context())
		leave()
		if _, err := turns.take(left, "third"); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that left gets %v", err)
		}
		end <- struct{}{}
		synctest.Wait()
		if len(order) != 3 || order[2] != "other" {
			t.Errorf("turns: %v, want other as soon as one slot is free", order)
		}
		for range 6 {
			end <- struct{}{}
			synctest.Wait()
		}
		if len(order) != 7 || len(turns.tenants) != 0 || len(turns.slots) != 0 {
			t.Errorf("in the end: %v, %d tenants, %d slots taken", order, len(turns.tenants), len(turns.slots))
		}
	})
}
