// A guestbook: entries are taken over HTTP, written by a queue's consumer, and copied every night by a schedule.
import { sign } from "./sign";

interface Env {
  TITLE: string;
  SIGNING_KEY: string;
  ENTRIES: {
    get(key: string): Promise<ArrayBuffer | null>;
    put(key: string, value: string): Promise<void>;
    list(options: { prefix: string; cursor?: string }): Promise<{ keys: { name: string }[]; listComplete: boolean; cursor?: string }>;
  };
  COPIES: {
    put(key: string, body: string, options: { contentType: string }): Promise<{ size: number }>;
    list(): Promise<{ objects: { key: string; size: number }[] }>;
  };
  DB: {
    execute(sql: string, params?: Value[]): Promise<{ rowsWritten: number }>;
    query(sql: string, params?: Value[]): Promise<{ rows: Record<string, Value>[] }>;
  };
  INBOX: { send(body: string): Promise<string> };
  GREETER: { fetch(request: Request): Promise<Response> };
}

// A value of SQL with its storage class; integers are text, so that none of their 64 bits is lost.
interface Value { type: string; value: string }

interface Entry { name: string; text: string; at: string; signature: string }

interface Batch { messages: { id: string; timestampMillis: number; body: Uint8Array }[] }

const prefix = "entry/";

// All entries, in the order in which they were taken: keys begin with the time.
async function book(env: Env): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await env.ENTRIES.list(cursor ? { prefix, cursor } : { prefix });
    for (const { name } of page.keys) {
      const value = await env.ENTRIES.get(name);
      if (value) entries.push(JSON.parse(new TextDecoder().decode(value)));
    }
    if (page.listComplete) return entries;
    cursor = page.cursor;
  }
}

async function people(env: Env): Promise<string> {
  const { rows } = await env.DB.query("select count(distinct name) as people from signatures");
  return rows[0].people.value;
}

async function take(request: Request, env: Env): Promise<Response> {
  const entry = await request.json().catch(() => null);
  if (typeof entry?.name !== "string" || typeof entry?.text !== "string" || !entry.name || entry.text.length > 1000) {
    return Response.json({ error: "an entry has a name and a text of at most 1000 characters" }, { status: 422 });
  }
  // What the queue has accepted is not lost; who signed gets the answer before the entry is written.
  const id = await env.INBOX.send(JSON.stringify({ name: entry.name, text: entry.text }));
  const greeting = await env.GREETER.fetch(new Request("http://hello/?name=" + encodeURIComponent(entry.name)));
  return Response.json({ id, greeting: (await greeting.text()).trim() }, { status: 202 });
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname } = new URL(request.url);
    switch (request.method + " " + pathname) {
      case "GET /":
        return new Response(`${env.TITLE}: ${(await book(env)).length} entries of ${await people(env)} people\n`);
      case "GET /entries":
        return Response.json(await book(env));
      case "POST /entries":
        return take(request, env);
      case "GET /copies":
        return Response.json((await env.COPIES.list()).objects.map(({ key, size }) => ({ key, size })));
    }
    return Response.json({ error: "no such page" }, { status: 404 });
  },

  // A message may come twice, so its id is in the key: the second time writes the same entry again.
  async queue(batch: Batch, env: Env): Promise<void> {
    for (const m of batch.messages) {
      const at = new Date(m.timestampMillis).toISOString();
      const { name, text } = JSON.parse(new TextDecoder().decode(m.body));
      const signature = await sign(env.SIGNING_KEY, `${name}\n${text}\n${at}`);
      await env.DB.execute("insert into signatures values (?1, ?2) on conflict do nothing", [{ type: "text", value: m.id }, { type: "text", value: name }]);
      await env.ENTRIES.put(`${prefix}${at} ${m.id}`, JSON.stringify({ name, text, at, signature }));
    }
  },

  // The same match may come twice too: the copy has the name of its minute.
  async scheduled(event: { scheduledTime: number }, env: Env): Promise<void> {
    const day = new Date(event.scheduledTime).toISOString();
    await env.COPIES.put(`${day}.json`, JSON.stringify(await book(env)), { contentType: "application/json" });
  },
};
