import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "../../ops/local/ports.ts";
import { atEnd } from "./at-end.ts";

type Answer = { result?: unknown; error?: unknown };
export type Call = { method: string; params: unknown[] };

export type FaultProxy = {
  readonly url: string;
  /** Calls per method since the start, those that were refused too. */
  readonly calls: Readonly<Record<string, number>>;
  /** While true every connection is reset. */
  refuse(on: boolean): void;
  /** Holds every call (or those it picks) so long before it is passed on; 0 ends it. */
  delay(ms: number, when?: (call: Call) => boolean): void;
  /** Runs after the chain has answered and before the caller hears of it. Undefined takes it away. */
  onAnswer(hook: ((method: string, params: unknown[], answer: Answer) => unknown) | undefined): void;
  /** The chain gets these calls and answers, and the caller's connection is cut instead. Undefined ends it. */
  dropAnswers(when: ((call: Call) => boolean) | undefined): void;
  /** These calls never reach the chain; the caller gets this JSON-RPC error. Undefined ends it. */
  fail(when: ((call: Call) => { code: number; message: string } | undefined) | undefined): void;
  close(): Promise<void>;
};

/** A JSON-RPC endpoint that passes everything on to `target`, until it is told to misbehave. */
export async function startFaultProxy({ target }: { target: string }): Promise<FaultProxy> {
  const calls: Record<string, number> = {};
  let refusing = false;
  let held = { ms: 0, when: (_call: Call) => true };
  let hook: ((method: string, params: unknown[], answer: Answer) => unknown) | undefined;
  let drop: ((call: Call) => boolean) | undefined;
  let failing: ((call: Call) => { code: number; message: string } | undefined) | undefined;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await bodyOf(request);
    const asked = callsIn(text);
    for (const { method } of asked) calls[method] = (calls[method] ?? 0) + 1;
    if (refusing) return cut(request);
    if (held.ms > 0 && asked.some(held.when)) await pause(held.ms);
    const fault = asked.map((call) => failing?.(call)).find((found) => found !== undefined);
    if (fault !== undefined) return send(response, faultFor(text, fault));
    const answered = await fetch(target, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: text,
    });
    const answer = await answered.text();
    if (hook !== undefined) {
      const answers = answersIn(answer);
      for (const [index, { method, params }] of asked.entries()) await hook(method, params, answers[index] ?? {});
    }
    // What was asked while we held the answer counts as well: the process that asked may be dead by now.
    if (refusing || asked.some((call) => drop?.(call) === true)) return cut(request);
    send(response, answer);
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(() => cut(request));
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  atEnd(close);
  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    refuse(on) {
      refusing = on;
    },
    delay(ms, when = () => true) {
      held = { ms, when };
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

/** A reset, as a crashed node or a broken network gives it, and not an orderly end. */
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

/** Every call of a batch gets the same error. */
function faultFor(text: string, error: { code: number; message: string }): string {
  const answers = framesIn(text).map(({ id }) => ({ jsonrpc: "2.0", id, error }));
  return JSON.stringify(text.trimStart().startsWith("[") ? answers : answers[0]);
}
