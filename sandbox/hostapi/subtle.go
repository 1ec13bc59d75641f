package hostapi

import (
	"bytes"
	"encoding/binary"
	"errors"

	"edged/sandbox/engine"
	"edged/sandbox/hostapi/webcrypto"
)

// The functions behind SubtleCrypto. Numbers and packings are those of the prelude's files 67 and 68: a kind is the
// algorithm, the digest << 8, the curve << 16; how is the format, the usages << 4, extractable << 16.

// subtleArgs reads arguments. ok turns false at the first one that the prelude never gives. Slices are views of the
// guest's memory, good until a value is made.
type subtleArgs struct {
	in   *engine.Instance
	args []engine.Value
	ok   bool
}

func (a *subtleArgs) int(i int, most int64) int64 {
	n, ok := a.args[i].Int64()
	if !ok || n < -1 || n > most {
		a.ok = false
		return 0
	}
	return n
}

func (a *subtleArgs) bytes(i int) []byte {
	b, ok := a.in.Bytes(a.args[i])
	a.ok = a.ok && ok
	return b
}

// optional is bytes that may be undefined.
func (a *subtleArgs) optional(i int) []byte {
	if a.args[i].IsUndefined() {
		return nil
	}
	return a.bytes(i)
}

const (
	kindDecided = 1 << 24 // the direction of subtleCrypt: encrypt
	maxUint32   = 1<<32 - 1
)

// kind reads an algorithm with its digest and curve, and the bits above.
func (a *subtleArgs) kind(i int) (p webcrypto.Params, above bool) {
	n := a.int(i, 2*kindDecided-1)
	p = webcrypto.Params{Algorithm: webcrypto.Algorithm(n & 0xff), Hash: webcrypto.Hash(n >> 8 & 0xff), Curve: webcrypto.Curve(n >> 16 & 0xff)}
	a.ok = a.ok && n > 0 && p.Algorithm.Valid() && (p.Hash == 0 || p.Hash.Valid()) && (p.Curve == 0 || p.Curve.Valid()) &&
		(p.Hash != 0 || !p.Algorithm.NeedsHash())
	return p, n&kindDecided != 0
}

func (a *subtleArgs) how(i int) (f webcrypto.Format, u webcrypto.Usages, extractable bool) {
	n := a.int(i, 1<<17-1)
	f, u = webcrypto.Format(n&0xf), webcrypto.Usages(n>>4&0xfff)
	a.ok = a.ok && n > 0 && f.Valid() && u.Valid()
	return f, u, n>>16 != 0
}

// key reads a stored key of an algorithm, a copy: crypto/ed25519 remembers keys by weak pointers, and the program ends when
// it is given memory that is not the Go heap's.
func (a *subtleArgs) key(i int, p webcrypto.Params) webcrypto.Key {
	stored := bytes.Clone(a.bytes(i))
	if !a.ok {
		return webcrypto.Key{}
	}
	k, ok := webcrypto.Load(p, stored)
	a.ok = ok
	return k
}

// failureValue is an error of package webcrypto as what JavaScript throws.
func failureValue(in *engine.Instance, err error) engine.Value {
	var f *webcrypto.Failure
	if !errors.As(err, &f) {
		return in.NewDOMException("OperationError", "the operation failed")
	}
	return in.NewDOMException(f.Name, f.Text)
}

func throwFailure(in *engine.Instance, err error) engine.Value {
	v := failureValue(in, err)
	if v.IsException() {
		return v
	}
	return in.Throw(v)
}

// bytesOrThrow makes a result into what a host function returns.
func bytesOrThrow(in *engine.Instance) func(b []byte, err error) engine.Value {
	return func(b []byte, err error) engine.Value {
		if err != nil {
			return throwFailure(in, err)
		}
		return in.NewBytes(b)
	}
}

func keyOrThrow(in *engine.Instance, k webcrypto.Key, err error) engine.Value {
	if err != nil {
		return throwFailure(in, err)
	}
	return in.NewBytes(k.Stored())
}

// subtleImport(kind, how, bits, data): a stored key from bytes, or from an object with the converted members of a
// JsonWebKey.
func hostSubtleImport(in *engine.Instance, args []engine.Value) engine.Value {
	a := subtleArgs{in, args, true}
	var p webcrypto.ImportParams
	var f webcrypto.Format
	p.Params, _ = a.kind(0)
	f, p.Usages, p.Extractable = a.how(1)
	p.Bits = int(a.int(2, maxUint32))
	if !a.ok {
		return badArgument(in, "subtleImport")
	}
	data, isBytes := in.Bytes(args[3])
	switch {
	case f != webcrypto.JWKFormat && isBytes:
		k, err := webcrypto.Import(p, f, data)
		return keyOrThrow(in, k, err)
	case f != webcrypto.JWKFormat || !isBytes && !args[3].IsObject():
		return badArgument(in, "subtleImport")
	}
	var j *webcrypto.JWK
	var err error
	if isBytes {
		if j, err = webcrypto.ParseJWK(data); err != nil {
			return throwFailure(in, err)
		}
	} else if j, err = readJWK(in, args[3]); err != nil {
		if in.Err() != nil || errors.Is(err, errJWKShape) {
			return badArgument(in, "subtleImport")
		}
		return throwFailure(in, err)
	}
	k, err := webcrypto.ImportJWK(p, j)
	return keyOrThrow(in, k, err)
}

// subtleExport(kind, how, key): bytes, or text for "jwk".
func hostSubtleExport(in *engine.Instance, args []engine.Value) engine.Value {
	a := subtleArgs{in, args, true}
	p, _ := a.kind(0)
	f, u, extractable := a.how(1)
	k := a.key(2, p)
	if !a.ok {
		return badArgument(in, "subtleExport")
	}
	if f != webcrypto.JWKFormat {
		return bytesOrThrow(in)(webcrypto.Export(p, k, f))
	}
	text, err := webcrypto.ExportJWK(p, k, u, extractable)
	if err != nil {
		return throwFailure(in, err)
	}
	return in.NewString(text)
}

// subtleGenerate(kind, usages, bits, exponent): a stored secret or private key, or the number of an operation.
func hostSubtleGenerate(in *engine.Instance, args []engine.Value) engine.Value {
	a := subtleArgs{in, args, true}
	var p webcrypto.GenerateParams
	p.Params, _ = a.kind(0)
	p.Usages = webcrypto.Usages(a.int(1, 0xfff))
	p.Bits = int(a.int(2, maxUint32))
	p.Exponent = bytes.Clone(a.optional(3))
	if !a.ok || !p.Usages.Valid() || len(p.Exponent) > webcrypto.MaxSecretBytes {
		return badArgument(in, "subtleGenerate")
	}
	if err := webcrypto.CheckGenerate(p); err != nil {
		return throwFailure(in, err)
	}
	if !p.Slow() {
		k, err := webcrypto.Generate(p)
		return keyOrThrow(in, k, err)
	}
	return work(in, func(webcrypto.Stop) ([]byte, error) {
		k, err := webcrypto.Generate(p)
		return k.Stored(), err
	})
}

// subtlePublic(kind, key): the stored public key of a private one.
func hostSubtlePublic(in *engine.Instance, args []engine.Value) engine.Value {
	a := subtleArgs{in, args, true}
	p, _ := a.kind(0)
	k := a.key(1, p)
	if !a.ok {
		return badArgument(in, "subtlePublic")
	}
	k, err := webcrypto.PublicOf(p, k)
	return keyOrThrow(in, k, err)
}

// subtleRSA(kind, key): the bits of the modulus as two bytes, and the exponent behind them.
func hostSubtleRSA(in *engine.Instance, args []engine.Value) engine.Value {
	a := subtleArgs{in, args, true}
	p, _ := a.kind(0)
	k := a.key(1, p)
	if !a.ok || !p.Algorithm.IsRSA() {
		return badArgument(in, "subtleRSA")
	}
	bits, exponent, err := webcrypto.DescribeRSA(k)
	if err != nil {
		return throwFailure(in, err)
	}
	return in.NewBytes(append(binary.BigEndian.AppendUint16(nil, uint16(bits)), exponent...))
}

// subtleSign(kind, salt, key, data)
func hostSubtleSign(in *engine.Instance, args []engine.Value) engine.Value {
	a := subtleArgs{in, args, true}
	p := a.sign()
	k, data := a.key(2, p.Params), a.bytes(3)
	if !a.ok {
		return badArgument(in, "subtleSign")
	}
	return bytesOrThrow(in)(webcrypto.Sign(p, k, data, in.Overdue))
}

// subtleVerify(kind, salt, key, signature, data): a boolean.
func hostSubtleVerify(in *engine.Instance, args []engine.Value) engine.Value {
	a := subtleArgs{in, args, true}
	p := a.sign()
	k, sig, data := a.key(2, p.Params), a.bytes(3), a.bytes(4)
	if !a.ok {
		return badArgument(in, "subtleVerify")
	}
	good, err := webcrypto.Verify(p, k, sig, data, in.Overdue)
	if err != nil {
		return throwFailure(in, err)
	}
	return engine.Bool(good)
}

// sign reads what signing and verifying have in common.
func (a *subtleArgs) sign() (p webcrypto.SignParams) {
	p.Params, _ = a.kind(0)
	p.Salt = int(a.int(1, maxUint32))
	a.ok = a.ok && p.Salt >= 0 && p.Algorithm.Signs() && (p.Algorithm == webcrypto.Ed25519 || p.Hash != 0)
	return p
}

// subtleCrypt(kind and direction, bits, key, iv, additional, data)
func hostSubtleCrypt(in *engine.Instance, args []engine.Value) engine.Value {
	a := subtleArgs{in, args, true}
	var p webcrypto.CryptParams
	var encrypt bool
	p.Params, encrypt = a.kind(0)
	p.Bits = int(a.int(1, 0xffff))
	k := a.key(2, p.Params)
	p.IV, p.Additional = a.optional(3), a.optional(4)
	data := a.bytes(5)
	if !a.ok || !p.Algorithm.Encrypts() {
		return badArgument(in, "subtleCrypt")
	}
	if encrypt {
		return bytesOrThrow(in)(webcrypto.Encrypt(p, k, data, in.Overdue))
	}
	return bytesOrThrow(in)(webcrypto.Decrypt(p, k, data, in.Overdue))
}

// subtleDerive(kind, bits, key, kind and key of the other side, salt, info, iterations): bytes, or the number of an
// operation.
func hostSubtleDerive(in *engine.Instance, args []engine.Value) engine.Value {
	a := subtleArgs{in, args, true}
	var p webcrypto.DeriveParams
	p.Params, _ = a.kind(0)
	p.Bits = a.int(1, maxUint32)
	k := a.key(2, p.Params)
	if !args[4].IsUndefined() {
		p.Public = &webcrypto.DerivePublic{}
		p.Public.Params, _ = a.kind(3)
		p.Public.Key = a.key(4, p.Public.Params)
	}
	p.Salt, p.Info = a.optional(5), a.optional(6)
	p.Iterations = a.int(7, maxUint32)
	agrees := p.Algorithm == webcrypto.ECDH || p.Algorithm == webcrypto.X25519
	if !a.ok || !p.Algorithm.Derives() || p.Public == nil && agrees || p.Hash == 0 && !agrees {
		return badArgument(in, "subtleDerive")
	}
	if p.Work() <= webcrypto.LightIterations {
		return bytesOrThrow(in)(webcrypto.Derive(p, k, in.Overdue))
	}
	p.Salt = bytes.Clone(p.Salt)
	return work(in, func(stop webcrypto.Stop) ([]byte, error) { return webcrypto.Derive(p, k, stop) })
}
