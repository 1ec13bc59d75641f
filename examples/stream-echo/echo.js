// Streams in both directions: nothing here ever holds a whole body.

const encoder = new TextEncoder();

// count is a stream that makes a line only when the client has taken the one before.
function count(to) {
  let n = 0;
  return new ReadableStream(
    {
      pull(controller) {
        if (n >= to) {
          controller.close();
          return;
        }
        n += 1;
        controller.enqueue(encoder.encode(`${n}\n`));
      },
    },
    { highWaterMark: 0 },
  );
}

// upperCase changes the bytes of ASCII letters as they pass.
function upperCase() {
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk.map((byte) => (byte >= 0x61 && byte <= 0x7a ? byte - 0x20 : byte)));
    },
  });
}

const text = { "content-type": "text/plain; charset=utf-8" };

export default {
  async fetch(request) {
    const url = new URL(request.url);
    switch (url.pathname) {
      case "/echo":
        return new Response(request.body, { headers: { "content-type": request.headers.get("content-type") ?? "application/octet-stream" } });
      case "/upper":
        return new Response(request.body?.pipeThrough(upperCase()) ?? null, { headers: text });
      case "/size": {
        let bytes = 0;
        const reader = request.body?.getReader();
        for (let part = await reader?.read(); part && !part.done; part = await reader.read()) {
          bytes += part.value.byteLength;
        }
        return new Response(`${bytes}\n`, { headers: text });
      }
      case "/count": {
        const to = Number(url.searchParams.get("to") ?? 10);
        if (!Number.isInteger(to) || to < 0 || to > 1_000_000) {
          return new Response("to must be a whole number up to 1000000\n", { status: 400, headers: text });
        }
        return new Response(count(to), { headers: text });
      }
      default:
        return new Response("POST /echo, POST /upper, POST /size, GET /count?to=N\n", { status: 404, headers: text });
    }
  },
};
