import { renderToReadableStream } from "react-dom/server.browser";

import { Page } from "./page";

// later resolves after other work had its turn, as a query to a store would.
function later<T>(value: T, ms: number): Promise<T> {
  return new Promise((resolve) => setTimeout(() => resolve(value), ms));
}

export default {
  async fetch(request: Request): Promise<Response> {
    const url = new URL(request.url);
    // What is posted is the list, a line each: the page begins before it has come.
    const items = request.body ? request.text().then((text) => text.trim().split("\n")) : later(["one", "two", "three"], 200);
    const stream = await renderToReadableStream(<Page name={url.searchParams.get("name") ?? "world"} items={items} />, {
      signal: request.signal,
      onError: (e) => console.error(e),
    });
    if (url.searchParams.has("whole")) {
      await stream.allReady; // for clients that want no fallbacks
    }
    return new Response(stream, { headers: { "content-type": "text/html; charset=utf-8" } });
  },
};
