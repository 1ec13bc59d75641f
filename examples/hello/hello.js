// The smallest worker: one module whose default export answers requests.
export default {
  fetch(request, env) {
    const url = new URL(request.url);
    const name = url.searchParams.get("name") ?? "world";
    return new Response(`${env.GREETING}, ${name}!\n`);
  },
};
