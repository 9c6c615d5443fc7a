import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import type { Methods } from "./chain-methods.ts";
import { membersOf } from "./rpc-params.ts";
import type { Subscriptions } from "./subscriptions.ts";
import type { Disturbance } from "./test-controls.ts";
import { RpcError } from "./validator-errors.ts";

export type ServerOptions = {
  methods: Methods;
  disturbance(method: string): Disturbance;
  subscriptions: Subscriptions;
};

type Answer = { jsonrpc: "2.0"; id: unknown; result?: unknown; error?: unknown };

/** Serves JSON-RPC over HTTP at `port`, and over WebSockets there and at the next port, where web3.js connects. */
export async function startServer(port: number, options: ServerOptions): Promise<{ close(): void }> {
  const sockets = new WebSocketServer({ noServer: true });
  const servers = [createServer((request, response) => void respond(request, response, options)), createServer()];
  for (const server of servers) {
    server.keepAliveTimeout = 60_000;
    server.on("upgrade", (request, socket, head) =>
      sockets.handleUpgrade(request, socket, head, (open) => listenTo(open, options)),
    );
  }
  await Promise.all(servers.map((server, index) => listen(server, port + index)));
  return {
    close() {
      for (const open of sockets.clients) open.terminate();
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
    },
  };
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
}

async function respond(request: IncomingMessage, response: ServerResponse, options: ServerOptions): Promise<void> {
  if (request.method === "GET" && request.url === "/health") return void response.end("ok");
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk);
  } catch {
    return;
  }
  const call = (method: string, params: readonly unknown[]) => callMethod(method, params, options);
  const answer = await answerText(Buffer.concat(chunks).toString("utf8"), call);
  if (answer === hang) return;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(answer));
}

function listenTo(socket: WebSocket, options: ServerOptions): void {
  const call = (method: string, params: readonly unknown[]) => options.subscriptions.call(socket, method, params);
  socket.on("message", async (data: RawData) => {
    const answer = await answerText(data.toString(), call);
    if (answer !== undefined && answer !== hang) socket.send(JSON.stringify(answer));
  });
  socket.on("close", () => options.subscriptions.leave(socket));
  socket.on("error", () => socket.terminate());
}

/** Marks a call that gets no response. */
const hang = Symbol("hang");
type Call = (method: string, params: readonly unknown[]) => unknown;

async function answerText(text: string, call: Call): Promise<Answer | Answer[] | undefined | typeof hang> {
  let request: unknown;
  try {
    request = JSON.parse(text);
  } catch {
    return refusal(null, new RpcError(-32700, "Parse error"));
  }
  if (!Array.isArray(request)) return await answerOne(request, call);
  const answers: Answer[] = [];
  for (const each of request) {
    const answer = await answerOne(each, call);
    if (answer === hang) return hang;
    if (answer !== undefined) answers.push(answer);
  }
  return answers;
}

async function answerOne(request: unknown, call: Call): Promise<Answer | undefined | typeof hang> {
  const { id, method, params = [] } = membersOf(request);
  if (typeof method !== "string") return refusal(id ?? null, new RpcError(-32600, "Invalid request"));
  try {
    if (!Array.isArray(params)) throw new RpcError(-32602, "`params` should be an array");
    const called = call(method, params);
    const result = called instanceof Promise ? await called : called;
    if (result === hang) return hang;
    // A request without an id is a notification, such as the ping of web3.js.
    return id === undefined ? undefined : { jsonrpc: "2.0", id, result };
  } catch (error) {
    return id === undefined ? undefined : refusal(id, error);
  }
}

function refusal(id: unknown, error: unknown): Answer {
  if (!(error instanceof RpcError)) {
    console.error(error);
    return refusal(id, new RpcError(-32603, "Internal error"));
  }
  const { code, message, data } = error;
  return { jsonrpc: "2.0", id, error: data === undefined ? { code, message } : { code, message, data } };
}

function callMethod(name: string, params: readonly unknown[], { methods, disturbance }: ServerOptions): unknown {
  const method = Object.hasOwn(methods, name) ? methods[name] : undefined;
  if (method === undefined) throw new RpcError(-32601, "Method not found");
  // Disturbances never apply to the test controls.
  if (name.startsWith("local_")) return method(params);
  const { waitMs, fails } = disturbance(name);
  if (waitMs === 0 && fails === undefined) return method(params);
  return disturbed(waitMs, fails, () => method(params));
}

async function disturbed(waitMs: number, fails: Disturbance["fails"], run: () => unknown): Promise<unknown> {
  if (waitMs > 0) await pause(waitMs);
  if (fails === "hang") return hang;
  if (fails === "error") throw new RpcError(-32005, "Node is behind by 42 slots", { numSlotsBehind: 42 });
  return run();
}
