package facade

// The methods of a bucket (objects §3).
var (
	BucketHead   = &Method{"objects", "head", []string{"invalid_key", unavailable}}
	BucketGet    = &Method{"objects", "get", []string{"invalid_key", "precondition_failed", "range_not_satisfiable", unavailable}}
	BucketPut    = &Method{"objects", "put", []string{"invalid_key", "invalid_body", "value_too_large", "precondition_failed", unavailable}}
	BucketDelete = &Method{"objects", "delete", []string{"invalid_key", unavailable}}
	BucketList   = &Method{"objects", "list", []string{"invalid_cursor", unavailable}}

	BucketCreateMultipartUpload   = &Method{"objects", "createMultipartUpload", []string{"invalid_key", unavailable}}
	BucketUploadPart              = &Method{"objects", "uploadPart", []string{"invalid_key", "invalid_body", "upload_not_found", unavailable}}
	BucketCompleteMultipartUpload = &Method{"objects", "completeMultipartUpload", []string{"invalid_key", "invalid_part", "upload_not_found", "value_too_large", unavailable}}
	BucketAbortMultipartUpload    = &Method{"objects", "abortMultipartUpload", []string{"invalid_key", "upload_not_found", unavailable}}
)

// ServiceFetch is the method of a service binding (service-binding §2).
var ServiceFetch = &Method{"service", "fetch", []string{"request_too_large", unavailable}}
