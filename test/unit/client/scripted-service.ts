import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll } from "vitest";

type Request = { method: string; url: string; headers: IncomingHttpHeaders; body: string };
type Answer = (response: ServerResponse) => void;

/** Returns an answer with a JSON body. */
export const json =
  (status: number, body: object, headers: Record<string, string> = {}): Answer =>
  (response) =>
    void response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));

/** Breaks the connection. */
export const reset: Answer = (response) => void response.destroy();
/** Breaks the connection in the middle of the response. */
export const cutOff: Answer = (response) => {
  response.writeHead(200, { "content-length": "100" }).write("{");
  setImmediate(() => response.destroy());
};
/** Never answers. */
export const hang: Answer = () => undefined;

/** Header with the number of the script under which `fetch` sent a request. */
const SCRIPT = "x-script";

/**
 * Starts a server that gives these answers in order, the last one again and again, and records the requests. A request that a
 * caller has given up may arrive when the next script is set: the server breaks its connection, and takes no answer for it.
 */
export async function startScriptedService() {
  const requests: Request[] = [];
  let answers: readonly Answer[] = [json(200, {})];
  let scripts = 0;
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    const { method = "", url = "", headers } = request;
    if ((headers[SCRIPT] ?? String(scripts)) !== String(scripts)) return reset(response);
    const answer = answers[Math.min(requests.length, answers.length - 1)];
    requests.push({ method, url, headers, body: Buffer.concat(parts).toString() });
    answer?.(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { fetch } = globalThis;
  globalThis.fetch = (target, init) => {
    const headers = new Headers(init?.headers);
    headers.set(SCRIPT, String(scripts));
    return fetch(target, { ...init, headers });
  };
  afterAll(() => {
    globalThis.fetch = fetch;
    server.closeAllConnections();
    server.close();
  });
  return {
    baseUrl,
    requests,
    /** Sets the answers, and forgets the requests. */
    script(...next: Answer[]) {
      scripts += 1;
      answers = next;
      requests.length = 0;
    },
  };
}
