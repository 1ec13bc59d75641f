package facade

// Method is one method of a binding.
type Method struct {
	Door   string // what the method is one of: kv, sql, queue, batch, objects, service
	Name   string
	Errors []string // the names an application may see, besides TypeError
}

// Span returns the name of the method's step in a trace, like kv.get.
func (m *Method) Span() string { return m.Door + "." + m.Name }

// Methods lists the methods of every kind of binding (README §8): the one place that says which exist and how each fails.
var Methods = map[string][]*Method{
	"kv":    {kvGet, kvGetWithMetadata, kvPut, kvDelete, kvList},
	"queue": {queueSend, queueSendBatch},
	"batch": {batchAcknowledge, batchRetry, batchAcknowledgeAll, batchRetryAll}, // of the queue handler's argument
	"bucket": {BucketHead, BucketGet, BucketPut, BucketDelete, BucketList, BucketCreateMultipartUpload, BucketUploadPart,
		BucketCompleteMultipartUpload, BucketAbortMultipartUpload},
	"service": {ServiceFetch},
	"sql":     {sqlExecute, sqlQuery, sqlTransaction},
}
