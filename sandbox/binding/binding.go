package binding

// Binding is one entry of env that is more than a value (worker-version §8). Exactly one of the doors is set.
type Binding struct {
	Name string // as declared; checked by control

	KV      KV
	SQL     SQL
	Queue   Queue
	Service Service
}

// Kind returns the name of the door that is set, as the prelude knows it; "" if none is.
func (b *Binding) Kind() string {
	switch {
	case b.KV != nil:
		return "kv"
	case b.SQL != nil:
		return "sql"
	case b.Queue != nil:
		return "queue"
	case b.Service != nil:
		return "service"
	}
	return ""
}
