import { renderToReadableStream } from "react-dom/server.browser";

import { Page } from "./page";

export default {
  async fetch(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const stream = await renderToReadableStream(<Page name={url.searchParams.get("name") ?? "world"} />, {
      signal: request.signal,
      onError: (e) => console.error(e),
    });
    if (url.searchParams.has("whole")) {
      await stream.allReady; // for clients that want no fallbacks
    }
    return new Response(stream, { headers: { "content-type": "text/html; charset=utf-8" } });
  },
};
