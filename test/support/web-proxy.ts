import { createServer } from "node:http";
import { listen } from "./listen.ts";

export type ProxiedResponse = { status: number; headers: Record<string, string>; body: Buffer };
/** Changes a path's response. Undefined forwards it unchanged, "away" cuts the connection. */
export type AlterResponse = (path: string, answer: ProxiedResponse) => ProxiedResponse | "away" | undefined;

/**
 * Starts an HTTP proxy for an api that can alter its responses, as a bad deployment or an attacker in the middle may.
 */
export async function startWebProxy() {
  let target = "";
  let alter: AlterResponse | undefined;
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    const path = request.url ?? "/";
    asked.push(path);
    const headers = { "accept-encoding": String(request.headers["accept-encoding"] ?? "identity") };
    const upstream = await fetch(target + path, { headers, redirect: "manual" }).catch(() => undefined);
    if (!upstream) return void response.destroy();
    const body = Buffer.from(await upstream.arrayBuffer());
    const { "content-length": _, connection: __, "keep-alive": ___, ...kept } = Object.fromEntries(upstream.headers);
    const answer = { status: upstream.status, headers: kept, body };
    const altered = alter?.(path, answer) ?? answer;
    if (altered === "away") return void response.destroy();
    response.writeHead(altered.status, altered.headers).end(altered.body);
  });
  const url = await listen(server);
  return {
    url,
    asked,
    pointTo(url: string) {
      target = url;
    },
    /** Sets the function that alters responses; undefined forwards them unchanged. */
    alter(next: AlterResponse | undefined) {
      alter = next;
    },
  };
}
