// Package webcrypto is the pure core of crypto.subtle: what the Web Cryptography API's operations compute, over the
// standard library's cryptography. It knows neither JavaScript nor the engine.
//
//	algorithm.go  algorithms, hashes, curves, usages, formats, by the numbers that the prelude uses
//	failure.go    Failure: the exception that an operation ends with
//	key.go        Key and its stored form
//	rsakey.go     RSA keys from and to their stored form
//	eckey.go      keys of the NIST curves
//	okpkey.go     Ed25519 and X25519
//	import.go     Import: raw, pkcs8, spki
//	pkcs8.go      what the standard library does not check of PKCS #8
//	jwk.go        JWK: the members and the rules of "jwk" imports
//	export.go     Export
//	generate.go   Generate, Public
//	sign.go       Sign, Verify
//	smallorder.go the points that Ed25519 must not accept
//	aes.go        the AES modes
//	keywrap.go    AES-KW
//	crypt.go      Encrypt, Decrypt: RSA-OAEP and the choice of mode
//	derive.go     Derive: ECDH, X25519, HKDF, PBKDF2
//
// Invariants: functions keep no state and no slice that they were given. Sizes are bounded before work is done on them.
// Every error is a *Failure with the name of the exception that the standard asks for; no input panics. The order of the
// checks is the standard's. No primitive is our own: what is written out here is padding, framing and modes over one.
//
// Not here: Web IDL conversion, algorithm normalisation, the checks of a key's name and usages before an operation
// (sandbox/prelude); how long work is run (package hostapi).
package webcrypto
