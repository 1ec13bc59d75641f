package operator

import (
	"encoding/base64"
	"encoding/json"
	"errors"
)

// Bytes are bytes inside a JSON document, in the contract's one shape: {"encoding":"base64","data":"…"} (kv §3, D-17).
type Bytes []byte

type bytesJSON struct {
	Encoding string `json:"encoding"`
	Data     string `json:"data"`
}

// MarshalJSON renders the shape.
func (b Bytes) MarshalJSON() ([]byte, error) {
	return json.Marshal(bytesJSON{"base64", base64.StdEncoding.EncodeToString(b)})
}

var errBytes = errors.New(`bytes are {"encoding":"base64","data":"…"}`)

// UnmarshalJSON reads the shape: padded, unwrapped base64, and no other member.
func (b *Bytes) UnmarshalJSON(raw []byte) error {
	var members map[string]string
	if err := json.Unmarshal(raw, &members); err != nil || len(members) != 2 || members["encoding"] != "base64" {
		return errBytes
	}
	data, ok := members["data"]
	if !ok {
		return errBytes
	}
	for i := range len(data) {
		if data[i] == '\n' || data[i] == '\r' {
			return errBytes // the decoder would pass over them
		}
	}
	out, err := base64.StdEncoding.Strict().DecodeString(data)
	if err != nil {
		return errBytes
	}
	*b = out
	return nil
}
