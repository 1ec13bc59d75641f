// Server-sent events: a stream that is written as time passes and ends when its reader leaves.
export function ticks(count: number): Response {
  const encoder = new TextEncoder();
  let n = 0;
  const body = new ReadableStream({
    async pull(controller) {
      if (n === count) {
        controller.close();
        return;
      }
      await new Promise((go) => setTimeout(go, 5));
      controller.enqueue(encoder.encode(`id: ${n}\nevent: tick\ndata: ${JSON.stringify({ n })}\n\n`));
      n++;
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream", "cache-control": "no-store" } });
}
