import { createServer } from "node:http";
import { postJson } from "../../local/post-json.ts";
import { listen } from "./listen.ts";

/** Returns the result that the caller receives in place of the chain's result. */
export type Alter = (method: string, params: unknown[], result: unknown) => unknown;

/** A result of `Alter` for which the caller receives an error: one of the call, or an HTTP status. */
export class RpcRefusal {
  readonly status: number;
  readonly error: { code: number; message: string };
  constructor(error: { code: number; message: string }, status = 200) {
    this.error = error;
    this.status = status;
  }
}

/** Starts a JSON-RPC proxy for single calls that can alter results, as a lagging or forgetful node does. */
export async function startAlteringProxy({ target }: { target: string }) {
  let alter: Alter | undefined;
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts).toString("utf8");
    const { method, params = [] } = JSON.parse(body) as { method: string; params?: unknown[] };
    const headers = { "content-type": "application/json" };
    const text = await postJson(target, body).catch(() => undefined);
    // The chain ends with the file, perhaps before a call that no one waits for.
    if (text === undefined) return void request.socket.resetAndDestroy();
    const answer = JSON.parse(text) as { result?: unknown };
    if (alter && "result" in answer) answer.result = alter(method, params, answer.result);
    const { result } = answer;
    if (!(result instanceof RpcRefusal)) response.writeHead(200, headers).end(JSON.stringify(answer));
    else if (result.status === 200) response.writeHead(200, headers).end(JSON.stringify({ error: result.error }));
    else response.writeHead(result.status).end();
  });
  const url = await listen(server);
  return {
    url,
    /** Sets the function that alters results; undefined forwards them unchanged. */
    alter(next: Alter | undefined) {
      alter = next;
    },
  };
}
