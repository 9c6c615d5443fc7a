import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { signIn, signOut } from "../../payments/operators/sign-in.ts";
import type { PaymentDeps } from "../../payments/payment-deps.ts";
import type { Decrypt } from "../../runtime/encryption.ts";
import type { Log } from "../../runtime/log.ts";
import type { Metrics } from "../../runtime/metrics.ts";
import { loginPage, logoutPage } from "./login-pages.ts";
import { isFromElsewhere } from "./same-origin.ts";
import { readSessionCookie, writeSessionCookie } from "./session-cookie.ts";

/** What the login works with. */
export type LoginDeps = Pick<PaymentDeps, "db" | "now"> & {
  decryptTotpSecret: Decrypt;
  log: Log;
  metrics: Pick<Metrics, "refusedLogins">;
};

/** Serves the login page and ends sessions. Nothing else is served without a session. */
export function serveLogin(app: FastifyInstance, deps: LoginDeps): void {
  app.addContentTypeParser("application/x-www-form-urlencoded", { parseAs: "string" }, (_request, body, done) =>
    done(null, new URLSearchParams(String(body))),
  );
  app.get("/login", (_request, reply) => sendPage(reply, 200, loginPage("")));
  app.post("/login", (request, reply) => logIn(deps, request, reply));
  app.get("/logout", (_request, reply) => sendPage(reply, 200, logoutPage));
  app.post("/logout", async (request, reply) => {
    const isSecure = request.protocol === "https";
    const token = readSessionCookie(request.headers, { isSecure });
    if (token !== undefined && !isFromElsewhere(request.headers)) await signOut(deps, token);
    return reply.header("set-cookie", writeSessionCookie(undefined, { isSecure })).redirect("/login", 303);
  });
}

async function logIn(deps: LoginDeps, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  if (isFromElsewhere(request.headers)) return sendPage(reply, 403, loginPage("Open this page and log in here."));
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
  if (signedIn.waitMs === 0) return sendPage(reply, 401, loginPage("The name, the password or the code is wrong."));
  const seconds = Math.ceil(signedIn.waitMs / 1_000);
  reply.header("retry-after", seconds);
  const message = `Too many wrong logins. Try again in ${Math.ceil(seconds / 60)} minutes.`;
  return sendPage(reply, 429, loginPage(message));
}

function sendPage(reply: FastifyReply, status: number, page: string): FastifyReply {
  return reply
    .code(status)
    .type("text/html; charset=utf-8")
    .header("cache-control", "no-store")
    .header("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'")
    .send(page);
}
