import { createServer } from "node:http";
import { listen } from "./listen.ts";

export type WebAnswer = { status: number; headers: Record<string, string>; body: Buffer };
/** Changes what a path answers; undefined passes it on as it is, "away" cuts the connection. */
export type AlterWeb = (path: string, answer: WebAnswer) => WebAnswer | "away" | undefined;

/** A proxy before an api that tells callers something else than the api has said: a bad deploy, or somebody in between. */
export async function startWebProxy() {
  let target = "";
  let alter: AlterWeb | undefined;
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    const path = request.url ?? "/";
    asked.push(path);
    const headers = { "accept-encoding": String(request.headers["accept-encoding"] ?? "identity") };
    const passed = await fetch(target + path, { headers, redirect: "manual" }).catch(() => undefined);
    if (!passed) return void response.destroy();
    const body = Buffer.from(await passed.arrayBuffer());
    const { "content-length": _, connection: __, "keep-alive": ___, ...kept } = Object.fromEntries(passed.headers);
    const answer = { status: passed.status, headers: kept, body };
    const told = alter?.(path, answer) ?? answer;
    if (told === "away") return void response.destroy();
    response.writeHead(told.status, told.headers).end(told.body);
  });
  const url = await listen(server);
  return {
    url,
    asked,
    pointTo(url: string) {
      target = url;
    },
    /** Undefined passes everything on as it is. */
    alter(next: AlterWeb | undefined) {
      alter = next;
    },
  };
}
