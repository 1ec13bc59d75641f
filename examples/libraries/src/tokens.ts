// Signed tokens with jose: HS256 with the key of the environment.
import { SignJWT, jwtVerify, errors } from "jose";
import { StatusError } from "itty-router";

import type { Env } from "./index";

const key = (env: Env) => new TextEncoder().encode(env.TOKEN_KEY);

export function issue(subject: string, env: Env): Promise<string> {
  return new SignJWT({ role: "reader" })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject(subject)
    .setIssuedAt()
    .setExpirationTime("5m")
    .sign(key(env));
}

export async function verify(header: string | null, env: Env) {
  try {
    const { payload } = await jwtVerify((header ?? "").replace(/^Bearer /, ""), key(env), { algorithms: ["HS256"] });
    return { subject: payload.sub, role: payload.role };
  } catch (e) {
    if (e instanceof errors.JOSEError) throw new StatusError(401, e.code);
    throw e;
  }
}
