package abi

// An Op is the first argument of the dispatcher: which export it calls. The numbers are made by the build, which
// writes Digest beside the engine, so they may change at will.
type Op uint64

// The operations are named after the exports: JS_Eval is Eval, qjs_init is QjsInit.
const (
	// Start-up and memory.
	Initialize Op = iota
	QjsInit
	QjsGetRuntimePtr
	QjsGetContextPtr
	QjsSetInterruptHandler
	QjsSetPromiseRejectionHandler
	QjsSetModuleLoader
	QjsSetMemoryLimit
	QjsSetMaxStackSize
	QjsSetGcThreshold
	QjsGetAllocatedSize
	QjsFreeValue
	Malloc
	Free
	JsFree
	RunGC
	UpdateStackTop

	// Code and modules.
	Eval
	EvalFunction
	ResolveModule
	GetModuleName
	GetModuleNamespace
	GetImportMeta
	ReadObject
	WriteObject

	// Calls, jobs, promises, exceptions.
	Call
	CallConstructor
	Invoke
	IsJobPending
	ExecutePendingJob
	NewPromiseCapability
	NewSettledPromise
	IsPromise
	PromiseState
	PromiseResult
	PromiseThen
	PromiseMarkAsHandled
	Throw
	ThrowOutOfMemory
	ThrowTypeError
	ThrowRangeError
	ThrowDOMException
	HasException
	GetException
	NewError
	IsError
	IsUncatchableError
	ResetUncatchableError

	// Values.
	DupValue
	FreeValue
	NewStringLen
	NewStringUTF16
	ToString
	ToCStringLen2
	FreeCString
	ToCStringLenUTF16
	FreeCStringUTF16
	NewNumber
	NewBigInt64
	NewBigUint64
	ToBool
	ToInt32
	ToInt64
	ToFloat64
	ToBigInt64
	NewDate
	IsDate
	NewSymbol
	ParseJSON
	JSONStringify
	IsStrictEqual
	IsInstanceOf
	GetClassID

	// Objects and properties.
	GetGlobalObject
	NewObject
	NewObjectProto
	NewArray
	NewArrayFrom
	NewCFunction2
	IsFunction
	IsArray
	GetPrototype
	SetPrototype
	GetLength
	GetProperty
	GetPropertyStr
	GetPropertyUint32
	SetProperty
	SetPropertyStr
	SetPropertyUint32
	DefinePropertyValue
	DefinePropertyValueStr
	DefinePropertyValueUint32
	DefinePropertyGetSet
	HasProperty
	DeleteProperty
	GetOwnPropertyNames
	FreePropertyEnum
	FreezeObject
	NewAtomLen
	FreeAtom
	AtomToString
	ValueToAtom

	// Bytes.
	NewArrayBuffer
	NewArrayBufferCopy
	IsArrayBuffer
	GetArrayBuffer
	DetachArrayBuffer
	NewTypedArray
	GetTypedArrayType
	GetTypedArrayBuffer
	NewUint8Array
	NewUint8ArrayCopy
	GetUint8Array

	opCount // keeps the table below complete: a missing row is an empty name, which a test finds
)

// Exports lists by Op what the dispatcher reaches. i32 is a guest pointer or a C int, i64 a JSValue unless the C
// declaration says otherwise.
var exports = [opCount]Func{
	Initialize:                    {"_initialize", "->"},
	QjsInit:                       {"qjs_init", "-> i32"},
	QjsGetRuntimePtr:              {"qjs_get_runtime_ptr", "-> i32"},
	QjsGetContextPtr:              {"qjs_get_context_ptr", "-> i32"},
	QjsSetInterruptHandler:        {"qjs_set_interrupt_handler", "i32 ->"},
	QjsSetPromiseRejectionHandler: {"qjs_set_promise_rejection_handler", "i32 ->"},
	QjsSetModuleLoader:            {"qjs_set_module_loader", "i32 ->"},
	QjsSetMemoryLimit:             {"qjs_set_memory_limit", "i32 ->"},
	QjsSetMaxStackSize:            {"qjs_set_max_stack_size", "i32 ->"},
	QjsSetGcThreshold:             {"qjs_set_gc_threshold", "i32 ->"},
	QjsGetAllocatedSize:           {"qjs_get_allocated_size", "-> i32"},
	QjsFreeValue:                  {"qjs_free_value", "i32 ->"},
	Malloc:                        {"malloc", "i32 -> i32"},
	Free:                          {"free", "i32 ->"},
	JsFree:                        {"js_free", "i32 i32 ->"},
	RunGC:                         {"JS_RunGC", "i32 ->"},
	UpdateStackTop:                {"JS_UpdateStackTop", "i32 ->"},
	Eval:                          {"JS_Eval", "i32 i32 i32 i32 i32 -> i64"},
	EvalFunction:                  {"JS_EvalFunction", "i32 i64 -> i64"},
	ResolveModule:                 {"JS_ResolveModule", "i32 i64 -> i32"},
	GetModuleName:                 {"JS_GetModuleName", "i32 i32 -> i32"},
	GetModuleNamespace:            {"JS_GetModuleNamespace", "i32 i32 -> i64"},
	GetImportMeta:                 {"JS_GetImportMeta", "i32 i32 -> i64"},
	ReadObject:                    {"JS_ReadObject", "i32 i32 i32 i32 -> i64"},
	WriteObject:                   {"JS_WriteObject", "i32 i32 i64 i32 -> i32"},
	Call:                          {"JS_Call", "i32 i64 i64 i32 i32 -> i64"},
	CallConstructor:               {"JS_CallConstructor", "i32 i64 i32 i32 -> i64"},
	Invoke:                        {"JS_Invoke", "i32 i64 i32 i32 i32 -> i64"},
	IsJobPending:                  {"JS_IsJobPending", "i32 -> i32"},
	ExecutePendingJob:             {"JS_ExecutePendingJob", "i32 i32 -> i32"},
	NewPromiseCapability:          {"JS_NewPromiseCapability", "i32 i32 -> i64"},
	NewSettledPromise:             {"JS_NewSettledPromise", "i32 i32 i64 -> i64"},
	IsPromise:                     {"JS_IsPromise", "i64 -> i32"},
	PromiseState:                  {"JS_PromiseState", "i32 i64 -> i32"},
	PromiseResult:                 {"JS_PromiseResult", "i32 i64 -> i64"},
	PromiseThen:                   {"JS_PromiseThen", "i32 i64 i64 i64 -> i64"},
	PromiseMarkAsHandled:          {"JS_PromiseMarkAsHandled", "i32 i64 ->"},
	Throw:                         {"JS_Throw", "i32 i64 -> i64"},
	ThrowOutOfMemory:              {"JS_ThrowOutOfMemory", "i32 -> i64"},
	ThrowTypeError:                {"JS_ThrowTypeError", "i32 i32 i32 -> i64"},
	ThrowRangeError:               {"JS_ThrowRangeError", "i32 i32 i32 -> i64"},
	ThrowDOMException:             {"JS_ThrowDOMException", "i32 i32 i32 i32 -> i64"},
	HasException:                  {"JS_HasException", "i32 -> i32"},
	GetException:                  {"JS_GetException", "i32 -> i64"},
	NewError:                      {"JS_NewError", "i32 -> i64"},
	IsError:                       {"JS_IsError", "i64 -> i32"},
	IsUncatchableError:            {"JS_IsUncatchableError", "i64 -> i32"},
	ResetUncatchableError:         {"JS_ResetUncatchableError", "i32 ->"},
	DupValue:                      {"JS_DupValue", "i32 i64 -> i64"},
	FreeValue:                     {"JS_FreeValue", "i32 i64 ->"},
	NewStringLen:                  {"JS_NewStringLen", "i32 i32 i32 -> i64"},
	NewStringUTF16:                {"JS_NewStringUTF16", "i32 i32 i32 -> i64"},
	ToString:                      {"JS_ToString", "i32 i64 -> i64"},
	ToCStringLen2:                 {"JS_ToCStringLen2", "i32 i32 i64 i32 -> i32"},
	FreeCString:                   {"JS_FreeCString", "i32 i32 ->"},
	ToCStringLenUTF16:             {"JS_ToCStringLenUTF16", "i32 i32 i64 -> i32"},
	FreeCStringUTF16:              {"JS_FreeCStringUTF16", "i32 i32 ->"},
	NewNumber:                     {"JS_NewNumber", "i32 f64 -> i64"},
	NewBigInt64:                   {"JS_NewBigInt64", "i32 i64 -> i64"},
	NewBigUint64:                  {"JS_NewBigUint64", "i32 i64 -> i64"},
	ToBool:                        {"JS_ToBool", "i32 i64 -> i32"},
	ToInt32:                       {"JS_ToInt32", "i32 i32 i64 -> i32"},
	ToInt64:                       {"JS_ToInt64", "i32 i32 i64 -> i32"},
	ToFloat64:                     {"JS_ToFloat64", "i32 i32 i64 -> i32"},
	ToBigInt64:                    {"JS_ToBigInt64", "i32 i32 i64 -> i32"},
	NewDate:                       {"JS_NewDate", "i32 f64 -> i64"},
	IsDate:                        {"JS_IsDate", "i64 -> i32"},
	NewSymbol:                     {"JS_NewSymbol", "i32 i32 i32 -> i64"},
	ParseJSON:                     {"JS_ParseJSON", "i32 i32 i32 i32 -> i64"},
	JSONStringify:                 {"JS_JSONStringify", "i32 i64 i64 i64 -> i64"},
	IsStrictEqual:                 {"JS_IsStrictEqual", "i32 i64 i64 -> i32"},
	IsInstanceOf:                  {"JS_IsInstanceOf", "i32 i64 i64 -> i32"},
	GetClassID:                    {"JS_GetClassID", "i64 -> i32"},
	GetGlobalObject:               {"JS_GetGlobalObject", "i32 -> i64"},
	NewObject:                     {"JS_NewObject", "i32 -> i64"},
	NewObjectProto:                {"JS_NewObjectProto", "i32 i64 -> i64"},
	NewArray:                      {"JS_NewArray", "i32 -> i64"},
	NewArrayFrom:                  {"JS_NewArrayFrom", "i32 i32 i32 -> i64"},
	NewCFunction2:                 {"JS_NewCFunction2", "i32 i32 i32 i32 i32 i32 -> i64"},
	IsFunction:                    {"JS_IsFunction", "i32 i64 -> i32"},
	IsArray:                       {"JS_IsArray", "i64 -> i32"},
	GetPrototype:                  {"JS_GetPrototype", "i32 i64 -> i64"},
	SetPrototype:                  {"JS_SetPrototype", "i32 i64 i64 -> i32"},
	GetLength:                     {"JS_GetLength", "i32 i64 i32 -> i32"},
	GetProperty:                   {"JS_GetProperty", "i32 i64 i32 -> i64"},
	GetPropertyStr:                {"JS_GetPropertyStr", "i32 i64 i32 -> i64"},
	GetPropertyUint32:             {"JS_GetPropertyUint32", "i32 i64 i32 -> i64"},
	SetProperty:                   {"JS_SetProperty", "i32 i64 i32 i64 -> i32"},
	SetPropertyStr:                {"JS_SetPropertyStr", "i32 i64 i32 i64 -> i32"},
	SetPropertyUint32:             {"JS_SetPropertyUint32", "i32 i64 i32 i64 -> i32"},
	DefinePropertyValue:           {"JS_DefinePropertyValue", "i32 i64 i32 i64 i32 -> i32"},
	DefinePropertyValueStr:        {"JS_DefinePropertyValueStr", "i32 i64 i32 i64 i32 -> i32"},
	DefinePropertyValueUint32:     {"JS_DefinePropertyValueUint32", "i32 i64 i32 i64 i32 -> i32"},
	DefinePropertyGetSet:          {"JS_DefinePropertyGetSet", "i32 i64 i32 i64 i64 i32 -> i32"},
	HasProperty:                   {"JS_HasProperty", "i32 i64 i32 -> i32"},
	DeleteProperty:                {"JS_DeleteProperty", "i32 i64 i32 i32 -> i32"},
	GetOwnPropertyNames:           {"JS_GetOwnPropertyNames", "i32 i32 i32 i64 i32 -> i32"},
	FreePropertyEnum:              {"JS_FreePropertyEnum", "i32 i32 i32 ->"},
	FreezeObject:                  {"JS_FreezeObject", "i32 i64 -> i32"},
	NewAtomLen:                    {"JS_NewAtomLen", "i32 i32 i32 -> i32"},
	FreeAtom:                      {"JS_FreeAtom", "i32 i32 ->"},
	AtomToString:                  {"JS_AtomToString", "i32 i32 -> i64"},
	ValueToAtom:                   {"JS_ValueToAtom", "i32 i64 -> i32"},
	NewArrayBuffer:                {"JS_NewArrayBuffer", "i32 i32 i32 i32 i32 i32 i32 -> i64"},
	NewArrayBufferCopy:            {"JS_NewArrayBufferCopy", "i32 i32 i32 -> i64"},
	IsArrayBuffer:                 {"JS_IsArrayBuffer", "i64 -> i32"},
	GetArrayBuffer:                {"JS_GetArrayBuffer", "i32 i32 i64 -> i32"},
	DetachArrayBuffer:             {"JS_DetachArrayBuffer", "i32 i64 ->"},
	NewTypedArray:                 {"JS_NewTypedArray", "i32 i32 i32 i32 -> i64"},
	GetTypedArrayType:             {"JS_GetTypedArrayType", "i64 -> i32"},
	GetTypedArrayBuffer:           {"JS_GetTypedArrayBuffer", "i32 i64 i32 i32 i32 -> i64"},
	NewUint8Array:                 {"JS_NewUint8Array", "i32 i32 i32 i32 i32 i32 -> i64"},
	NewUint8ArrayCopy:             {"JS_NewUint8ArrayCopy", "i32 i32 i32 -> i64"},
	GetUint8Array:                 {"JS_GetUint8Array", "i32 i32 i64 -> i32"},
}
