import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { atEnd } from "./at-end.ts";

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
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Undefined passes everything on as it is. */
    alter(next: Alter | undefined) {
      alter = next;
    },
  };
}
