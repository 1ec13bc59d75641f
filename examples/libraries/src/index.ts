// Libraries that people deploy, unmodified, behind one router: itty-router, zod, jose, graphql-yoga, and server-sent
// events without any.
import { AutoRouter, error } from "itty-router";
import { z } from "zod";

import { graphql } from "./graphql";
import { ticks } from "./events";
import { issue, verify } from "./tokens";

export type Env = { TOKEN_KEY: string };

const order = z.object({
  item: z.string().min(1).max(40),
  count: z.coerce.number().int().positive(),
  when: z.iso.date().optional(),
  tags: z.array(z.enum(["gift", "express"])).default([]),
});

const router = AutoRouter();

router
  .get("/greet/:name", ({ params, query }) => ({ hello: params.name, lang: query.lang ?? "en" }))
  .post("/orders", async (request) => {
    const parsed = order.safeParse(await request.json());
    return parsed.success ? parsed.data : error(422, { problems: parsed.error.issues.map((i) => [i.path.join("."), i.code]) });
  })
  .post("/tokens/:subject", async ({ params }, env: Env) => ({ token: await issue(params.subject, env) }))
  .get("/me", async (request, env: Env) => verify(request.headers.get("authorization"), env))
  .get("/events", ({ query }) => ticks(Number(query.count ?? 3)))
  .all("/graphql", (request) => graphql(request));

export default { fetch: router.fetch };
