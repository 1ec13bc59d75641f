package hostapi

import (
	"errors"

	"edged/sandbox/engine"
	"edged/sandbox/hostapi/webcrypto"
)

// errJWKShape: an object that is not what the prelude makes of a JsonWebKey.
var errJWKShape = errors.New("not a converted JsonWebKey")

// maxKeyOps bounds a list of key_ops: eight values mean something.
const maxKeyOps = 256

// readJWK reads the members of a JsonWebKey, which the prelude has put into an object without prototype.
func readJWK(in *engine.Instance, o engine.Value) (*webcrypto.JWK, error) {
	j := &webcrypto.JWK{}
	for name, to := range j.Members() {
		v := in.GetProp(o, name)
		if v.IsUndefined() {
			continue
		}
		text, ok := in.String(v)
		in.Free(v)
		if !ok {
			return nil, errJWKShape
		}
		*to = &text
	}
	if v := in.GetProp(o, "ext"); v.IsBool() {
		ext := v.Bool()
		j.Ext = &ext
	}
	oth := in.GetProp(o, "oth")
	j.Oth = oth.IsObject()
	in.Free(oth)
	list := in.GetProp(o, "key_ops")
	if list.IsUndefined() {
		return j, nil
	}
	defer in.Free(list)
	values, err := readStrings(in, list)
	j.KeyOps = webcrypto.NewKeyOps(values)
	return j, err
}

// readStrings reads an array of strings.
func readStrings(in *engine.Instance, list engine.Value) ([]string, error) {
	if !in.IsArray(list) {
		return nil, errJWKShape
	}
	n, ok := in.GetProp(list, "length").Int()
	if !ok {
		return nil, errJWKShape
	}
	if n > maxKeyOps {
		return nil, &webcrypto.Failure{Name: "DataError", Text: "the member key_ops of the JSON Web Key is too long"}
	}
	out := make([]string, n)
	for i := range out {
		v := in.GetIndex(list, uint32(i))
		out[i], ok = in.String(v)
		in.Free(v)
		if !ok {
			return nil, errJWKShape
		}
	}
	return out, nil
}
