package gossip

import (
	"encoding/binary"
	"errors"
)

// Head is what a node rings with: the last durable write of its store.
type Head struct {
	Epoch uint64 // of the store; Ring fills it in
	Seq   uint64 // its last own sequence number
	Ms    int64  // its clock, Unix milliseconds
}

const (
	headVersion = 1
	headBytes   = 1 + 3*8
)

var errHead = errors.New("head is malformed")

func (h Head) append(dst []byte) []byte {
	be := binary.BigEndian
	dst = append(dst, headVersion)
	dst = be.AppendUint64(dst, h.Epoch)
	dst = be.AppendUint64(dst, h.Seq)
	return be.AppendUint64(dst, uint64(h.Ms))
}

func parseHead(b []byte) (h Head, err error) {
	if len(b) != headBytes || b[0] != headVersion {
		return h, errHead
	}
	be := binary.BigEndian
	h = Head{be.Uint64(b[1:]), be.Uint64(b[9:]), int64(be.Uint64(b[17:]))}
	if h.Epoch == 0 || h.Ms < 0 {
		return Head{}, errHead
	}
	return h, nil
}
