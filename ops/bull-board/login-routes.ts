import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { signIn, signOut } from "../../payments/operators/sign-in.ts";
import { isFromElsewhere } from "./allowed-writes.ts";
import type { BoardDeps } from "./board.ts";
import { readSessionCookie, writeSessionCookie } from "./session-cookie.ts";

type Deps = Pick<BoardDeps, "db" | "now" | "decryptTotpSecret" | "log" | "metrics">;

/** Serves the login page and ends sessions. Nothing else is served without a session. */
export function serveLogin(app: FastifyInstance, deps: Deps): void {
  app.addContentTypeParser("application/x-www-form-urlencoded", { parseAs: "string" }, (_request, body, done) =>
    done(null, new URLSearchParams(String(body))),
  );
  app.get("/login", (_request, reply) => sendPage(reply, 200));
  app.post("/login", (request, reply) => logIn(deps, request, reply));
  app.post("/logout", async (request, reply) => {
    const isSecure = request.protocol === "https";
    const token = readSessionCookie(request.headers, { isSecure });
    if (token !== undefined && !isFromElsewhere(request.headers)) await signOut(deps, token);
    return reply.header("set-cookie", writeSessionCookie(undefined, { isSecure })).redirect("/login", 303);
  });
}

async function logIn(deps: Deps, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  if (isFromElsewhere(request.headers)) return sendPage(reply, 403, "Open this page and log in here.");
  const form = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
  const read = (name: string) => form.get(name)?.trim() ?? "";
  const login = { name: read("name"), password: read("password"), code: read("code"), address: request.ip };
  const signedIn = await signIn(deps, login);
  if (signedIn.token !== undefined) {
    deps.log.info({ operator: login.name, address: request.ip }, "operator logged in");
    const isSecure = request.protocol === "https";
    return reply.header("set-cookie", writeSessionCookie(signedIn.token, { isSecure })).redirect("/", 303);
  }
  deps.metrics.refusedLogins.inc();
  deps.log.warn({ operator: login.name, address: request.ip }, "login refused");
  if (signedIn.waitMs === 0) return sendPage(reply, 401, "The name, the password or the code is wrong.");
  const seconds = Math.ceil(signedIn.waitMs / 1_000);
  reply.header("retry-after", seconds);
  return sendPage(reply, 429, `Too many wrong logins. Try again in ${Math.ceil(seconds / 60)} minutes.`);
}

function sendPage(reply: FastifyReply, status: number, message = ""): FastifyReply {
  return reply
    .code(status)
    .type("text/html; charset=utf-8")
    .header("cache-control", "no-store")
    .header("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'")
    .send(page(message));
}

const page = (message: string) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Log in</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 20rem; margin: 15vh auto; padding: 0 1rem }
  label, input, button { display: block; width: 100%; box-sizing: border-box; font: inherit }
  label { margin-top: 1rem } input, button { padding: .5rem } button { margin-top: 1.5rem }
</style>
<h1>Payment queues</h1>
<p role="alert">${message}</p>
<form method="post" action="/login">
  <label>Name <input name="name" autocomplete="username" autocapitalize="none" required autofocus></label>
  <label>Password <input name="password" type="password" autocomplete="current-password" required></label>
  <label>Code <input name="code" inputmode="numeric" autocomplete="one-time-code" pattern="[0-9]{6}" required></label>
  <button>Log in</button>
</form>
</html>
`;
