import { createServer } from "node:http";
import { listen } from "./listen.ts";

/** Gives what the caller is told instead of what the chain has said. */
export type Alter = (method: string, params: unknown[], result: unknown) => unknown;

/** A JSON-RPC endpoint that passes single calls on and tells the caller something else: a node that lags or forgets. */
export async function startAlteringProxy({ target }: { target: string }) {
  let alter: Alter | undefined;
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts).toString("utf8");
    const { method, params = [] } = JSON.parse(body) as { method: string; params?: unknown[] };
    const headers = { "content-type": "application/json" };
    const answer = (await (await fetch(target, { method: "POST", headers, body })).json()) as { result?: unknown };
    if (alter && "result" in answer) answer.result = alter(method, params, answer.result);
    response.writeHead(200, headers).end(JSON.stringify(answer));
  });
  const url = await listen(server);
  return {
    url,
    /** Undefined passes everything on as it is. */
    alter(next: Alter | undefined) {
      alter = next;
    },
  };
}
