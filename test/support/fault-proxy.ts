import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "../../local/free-ports.ts";
import { postJson } from "../../local/post-json.ts";
import { addCleanup } from "./cleanups.ts";
import { KEEP_ALIVE_MS } from "./listen.ts";

type Answer = { result?: unknown; error?: unknown };
export type Call = { method: string; params: unknown[] };

export type FaultProxy = {
  readonly url: string;
  /** Calls per method since the start, including refused ones. */
  readonly calls: Readonly<Record<string, number>>;
  /** Resets every connection while `on` is true. */
  refuse(on: boolean): void;
  /** Delays calls (all, or those that `when` picks) before forwarding them; 0 ends it. */
  delay(ms: number, when?: (call: Call) => boolean): void;
  /** Holds calls back before forwarding them until the promise that `until` returns for them resolves. Undefined ends it. */
  hold(until: ((call: Call) => Promise<unknown> | undefined) | undefined): void;
  /** Runs a hook after the chain's answer and before the caller receives it. Undefined removes it. */
  onAnswer(hook: ((method: string, params: unknown[], answer: Answer) => unknown) | undefined): void;
  /** Forwards these calls and resets the caller's connection instead of answering. Undefined ends it. */
  dropAnswers(when: ((call: Call) => boolean) | undefined): void;
  /** Answers these calls with a JSON-RPC error without forwarding them. Undefined ends it. */
  fail(when: ((call: Call) => { code: number; message: string } | undefined) | undefined): void;
  close(): Promise<void>;
};

/** Starts a JSON-RPC proxy that forwards everything to `target` until a test makes it misbehave. */
export async function startFaultProxy({ target }: { target: string }): Promise<FaultProxy> {
  const calls: Record<string, number> = {};
  let refusing = false;
  let held = { ms: 0, when: (_call: Call) => true };
  let holding: ((call: Call) => Promise<unknown> | undefined) | undefined;
  let hook: ((method: string, params: unknown[], answer: Answer) => unknown) | undefined;
  let drop: ((call: Call) => boolean) | undefined;
  let failing: ((call: Call) => { code: number; message: string } | undefined) | undefined;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await bodyOf(request);
    const requested = callsIn(text);
    for (const { method } of requested) calls[method] = (calls[method] ?? 0) + 1;
    if (refusing) return cut(request);
    if (held.ms > 0 && requested.some(held.when)) await pause(held.ms);
    await Promise.all(requested.map((call) => holding?.(call)));
    const error = requested.map((call) => failing?.(call)).find((found) => found !== undefined);
    if (error !== undefined) return send(response, errorFor(text, error));
    const answer = await postJson(target, text);
    if (hook !== undefined) {
      const answers = answersIn(answer);
      for (const [index, { method, params }] of requested.entries()) await hook(method, params, answers[index] ?? {});
    }
    // Checked again, because the hook may have made the proxy refuse meanwhile.
    if (refusing || requested.some((call) => drop?.(call) === true)) return cut(request);
    send(response, answer);
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(() => cut(request));
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  addCleanup(close);
  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    refuse(on) {
      refusing = on;
    },
    delay(ms, when = () => true) {
      held = { ms, when };
    },
    hold(until) {
      holding = until;
    },
    onAnswer(next) {
      hook = next;
    },
    dropAnswers(when) {
      drop = when;
    },
    fail(when) {
      failing = when;
    },
    close,
  };
}

/** Resets the connection, as a crashed node or a broken network does, instead of closing it. */
function cut(request: IncomingMessage): void {
  request.socket.resetAndDestroy();
}

function send(response: ServerResponse, body: string): void {
  response.writeHead(200, { "content-type": "application/json" }).end(body);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}

type Framed = { id?: unknown; method?: unknown; params?: unknown };

function framesIn(text: string): Framed[] {
  const parsed: unknown = JSON.parse(text);
  return (Array.isArray(parsed) ? parsed : [parsed]) as Framed[];
}

function callsIn(text: string): Call[] {
  return framesIn(text).map(({ method, params }) => ({
    method: String(method),
    params: Array.isArray(params) ? params : [],
  }));
}

function answersIn(text: string): Answer[] {
  return framesIn(text) as Answer[];
}

/** Returns a response that gives every call of a batch the same error. */
function errorFor(text: string, error: { code: number; message: string }): string {
  const answers = framesIn(text).map(({ id }) => ({ jsonrpc: "2.0", id, error }));
  return JSON.stringify(text.trimStart().startsWith("[") ? answers : answers[0]);
}
