export interface Note {
  title: string;
  body: string;
}

export interface Limits {
  title: number;
  body: number;
}

// check returns the note that a JSON value is, or the sentence that says what is wrong with it.
export function check(value: unknown, limits: Limits): Note | string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return "a note is a JSON object";
  }
  const { title, body = "", ...rest } = value as Record<string, unknown>;
  const unknown = Object.keys(rest)[0];
  if (unknown !== undefined) {
    return `unknown member ${JSON.stringify(unknown)}`;
  }
  if (typeof title !== "string" || title.length === 0 || title.length > limits.title) {
    return `title must have 1 to ${limits.title} characters`;
  }
  if (typeof body !== "string" || body.length > limits.body) {
    return `body must have at most ${limits.body} characters`;
  }
  return { title, body };
}
