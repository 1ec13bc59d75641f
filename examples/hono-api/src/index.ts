import { Hono } from "hono";
import { HTTPException } from "hono/http-exception";

import { check, type Limits } from "./notes";
import usage from "./usage.txt";

type Env = { Bindings: { API_NAME: string; LIMITS: Limits } };

const app = new Hono<Env>();

app.use(async (c, next) => {
  await next();
  c.header("x-api", c.env.API_NAME);
});

app.get("/", (c) => c.text(usage));

app.get("/hello/:name", (c) => c.json({ hello: c.req.param("name"), lang: c.req.query("lang") ?? "en" }));

// digest names a note by its content, so that equal notes have one address.
async function digest(text: string): Promise<string> {
  const sum = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(sum), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

app.post("/notes", async (c) => {
  let value: unknown;
  try {
    value = await c.req.json();
  } catch {
    throw new HTTPException(400, { message: "the body is not JSON" });
  }
  const note = check(value, c.env.LIMITS);
  if (typeof note === "string") {
    throw new HTTPException(422, { message: note });
  }
  const id = await digest(JSON.stringify(note));
  return c.json({ id, ...note }, 201, { location: `/notes/${id}` });
});

app.notFound((c) => c.json({ error: "no such route" }, 404));

app.onError((err, c) => {
  if (err instanceof HTTPException) {
    return c.json({ error: err.message }, err.status);
  }
  throw err;
});

// Hono builds its table of routes when it first needs it. Each request starts from what this module has left behind, so it is built here, once.
app.router.match("GET", "/");

// The instance itself is the default export: edged calls its fetch as a method.
export default app;
