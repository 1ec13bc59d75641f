package codec

import "sync"

// Pool keeps encoders that nobody uses for the next that needs one: making one costs about a megabyte. Nothing of one
// stream shows in another. The zero value is empty and ready; safe for concurrent use.
type Pool struct{ idle [numFormats]sync.Pool }

// New is like the function New, with an encoder from the pool if there is one.
func (p *Pool) New(f Format, decompress bool) Codec {
	if !decompress {
		if e, ok := p.idle[f].Get().(*Encoder); ok {
			e.reset()
			return e
		}
	}
	return New(f, decompress)
}

// Release takes a codec back, which must not be used any more.
func (p *Pool) Release(c Codec) {
	if e, ok := c.(*Encoder); ok && e.out.Cap() <= maxIdleOutput {
		p.idle[e.format].Put(e)
	}
}

// maxIdleOutput bounds the buffer that an encoder in the pool keeps.
const maxIdleOutput = 256 << 10
