package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

const bucketWorker = `
export default {
	async fetch(request, env) {
		const url = new URL(request.url), key = url.pathname.slice(1);
		if (request.method === 'PUT') {
			if (url.search === '?old') return Response.json(await env.OLD.put(key, request.body).catch((e) => e.name));
			return Response.json((await env.FILES.put(key, request.body)).size);
		}
		if (request.method === 'POST') {
			const { uploadId } = await env.FILES.createMultipartUpload(key);
			const part = new Uint8Array(5 << 20).fill(98).buffer;
			const parts = [await env.FILES.uploadPart(key, uploadId, 1, part), await env.FILES.uploadPart(key, uploadId, 2, 'end')];
			return Response.json((await env.FILES.completeMultipartUpload(key, uploadId, parts)).size);
		}
		if (url.search === '?list') return Response.json((await env.FILES.list()).objects.map((o) => [o.key, o.size]));
		const object = await env.FILES.get(key);
		return object === null ? new Response('none', {status: 404}) : new Response(object.body);
	},
};`

// objects §§2–6 through one real node: bodies go through a worker to disk and back unchanged, also after a kill -9; the
// bucket's Form decides whether a stream needs a length.
func TestBuckets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, dir)
	files := n.made("ObjectBucket/0.3.0/", "files", object{})
	old := n.made("ObjectBucket/0.2.0/", "old", object{})
	worker := n.served("store", bucketWorker, object{"handlers": []string{"fetch"}, "bucketBindings": []bound{{"FILES", ref{files}}, {"OLD", ref{old}}}})
	url := n.address("store", worker)
	body := strings.Repeat("0123456789abcdef", 1<<17) // 2 MiB: a file of its own
	sum := sha256.Sum256([]byte(body))
	expect(t, "put", n.do("PUT", url+"/big", strings.NewReader(body)), 200, "2097152")
	expect(t, "put small", n.do("PUT", url+"/small", strings.NewReader("tiny")), 200, "4")
	expect(t, "multipart", n.do("POST", url+"/parts", nil), 200, "5242883")
	expect(t, "a stream without a length", n.do("PUT", url+"/x?old", strings.NewReader("y")), 200, `"invalid_body"`)
	n.kill()
	n = start(t, dir)
	expect(t, "list", n.get(url+"/?list"), 200, `[["big",2097152],["parts",5242883],["small",4]]`)
	expect(t, "small", n.get(url+"/small"), 200, "tiny")
	got := n.get(url + "/big")
	if again := sha256.Sum256([]byte(got.body)); again != sum {
		t.Errorf("big reads %d bytes with digest %s", len(got.body), hex.EncodeToString(again[:]))
	}
	expect(t, "parts", n.get(url+"/parts"), 200, strings.Repeat("b", 5<<20)+"end")
	expect(t, "none", n.get(url+"/none"), 404, "none")
}
