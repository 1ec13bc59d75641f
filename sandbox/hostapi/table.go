package hostapi

import (
	"edged/sandbox/engine"
	"edged/sandbox/engine/userwasm"
)

// Table returns the host functions of the web classes. Stored images hold positions in it: append only, behind the last.
func Table() []engine.Host {
	return append([]engine.Host{
		{Name: "log", Argc: 2, Fn: hostLog},
		{Name: "urlParse", Argc: 3, Fn: hostURLParse},
		{Name: "urlSet", Argc: 4, Fn: hostURLSet},
		{Name: "percentDecode", Argc: 1, Fn: hostPercentDecode},
		{Name: "utf8Encode", Argc: 1, Fn: hostUTF8Encode},
		{Name: "utf8EncodeInto", Argc: 3, Fn: hostUTF8EncodeInto},
		{Name: "utf8Decode", Argc: 2, Fn: hostUTF8Decode},
		{Name: "encodingName", Argc: 1, Fn: hostEncodingName},
		{Name: "decode", Argc: 4, Fn: hostDecode},
		{Name: "randomFill", Argc: 1, Fn: hostRandomFill},
		{Name: "randomUUID", Argc: 0, Fn: hostRandomUUID},
		{Name: "digest", Argc: 2, Fn: hostDigest},
		{Name: "classID", Argc: 1, Fn: hostClassID},
		{Name: "headerName", Argc: 1, Fn: hostHeaderName},
		{Name: "headerValue", Argc: 1, Fn: hostHeaderValue},
		{Name: "mimeType", Argc: 1, Fn: hostMIMEType},
		{Name: "formParse", Argc: 2, Fn: hostFormParse},
		{Name: "codecOpen", Argc: 2, Fn: hostCodecOpen},
		{Name: "codecRun", Argc: 2, Fn: hostCodecRun},
		{Name: "codecClose", Argc: 1, Fn: hostCodecClose},
		{Name: "subtleImport", Argc: 4, Fn: hostSubtleImport},
		{Name: "subtleExport", Argc: 3, Fn: hostSubtleExport},
		{Name: "subtleGenerate", Argc: 4, Fn: hostSubtleGenerate},
		{Name: "subtlePublic", Argc: 2, Fn: hostSubtlePublic},
		{Name: "subtleRSA", Argc: 2, Fn: hostSubtleRSA},
		{Name: "subtleSign", Argc: 4, Fn: hostSubtleSign},
		{Name: "subtleVerify", Argc: 5, Fn: hostSubtleVerify},
		{Name: "subtleCrypt", Argc: 6, Fn: hostSubtleCrypt},
		{Name: "subtleDerive", Argc: 8, Fn: hostSubtleDerive},
		{Name: "hideSymbol", Argc: 1, Fn: hostHideSymbol},
		{Name: "patternCompile", Argc: 3, Fn: hostPatternCompile},
		{Name: "patternURL", Argc: 1, Fn: hostPatternURL},
		{Name: "intlNumber", Argc: 2, Fn: hostIntlNumber},
		{Name: "intlDate", Argc: 2, Fn: hostIntlDate},
		{Name: "intlZone", Argc: 1, Fn: hostIntlZone},
		{Name: "intlCurrency", Argc: 1, Fn: hostIntlCurrency},
	}, userwasm.Table()...)
}

// badArgument is the one answer to a call that the prelude never makes.
func badArgument(in *engine.Instance, name string) engine.Value {
	return in.ThrowType("host." + name + ": wrong arguments")
}
