package facade

// The methods of a bucket (objects §3).
var (
	BucketHead   = &Method{"head", []string{"invalid_key", unavailable}}
	BucketGet    = &Method{"get", []string{"invalid_key", "precondition_failed", "range_not_satisfiable", unavailable}}
	BucketPut    = &Method{"put", []string{"invalid_key", "invalid_body", "value_too_large", "precondition_failed", unavailable}}
	BucketDelete = &Method{"delete", []string{"invalid_key", unavailable}}
	BucketList   = &Method{"list", []string{"invalid_cursor", unavailable}}

	BucketCreateMultipartUpload   = &Method{"createMultipartUpload", []string{"invalid_key", unavailable}}
	BucketUploadPart              = &Method{"uploadPart", []string{"invalid_key", "invalid_body", "upload_not_found", unavailable}}
	BucketCompleteMultipartUpload = &Method{"completeMultipartUpload", []string{"invalid_key", "invalid_part", "upload_not_found", "value_too_large", unavailable}}
	BucketAbortMultipartUpload    = &Method{"abortMultipartUpload", []string{"invalid_key", "upload_not_found", unavailable}}
)

// The method of a service binding (service-binding §2).
var serviceFetch = &Method{"fetch", []string{"request_too_large", unavailable}}
