import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type Hex, keccak256 } from "viem";
import { freePort } from "../../local/free-ports.ts";
import { postJson } from "../../local/post-json.ts";
import { addCleanup } from "../support/cleanups.ts";
import { type Call, type CallRpc, callLaggingNode, type RpcResponse } from "../support/lagging-node.ts";
import { callLimitedNode, type Limit } from "../support/log-limits.ts";

/** The ways in which an RPC endpoint can fail. */
export const faultModes = [
  "refuses",
  "hangs",
  "returns 429",
  "returns 500",
  "loses responses to sends",
  "delivers twice",
  "drops accepted transactions",
  "lags behind",
  "forgets receipts",
  "serves another chain",
  "sends hostile error messages",
] as const;
export type FaultMode = (typeof faultModes)[number];

export type Endpoint = {
  readonly url: string;
  /** Sets how it fails from now on; undefined forwards every call unchanged. Resets hanging connections. */
  setFaultMode(faultMode: FaultMode | undefined): void;
  /** Returns how many calls the current failure has affected. */
  affected(): number;
  /** Sets how many blocks and logs one eth_getLogs may cover; there is no limit initially. */
  limitLogs(limit: Limit | undefined): void;
  /** Returns how many calls its log limit has refused. */
  limited(): number;
};

/** The methods and responses by which the failures are implemented for one chain family. */
export type Cluster = {
  /** The method that sends a transaction, and the transaction's id, computed from the call. */
  send: string;
  nameOf(call: Call): string;
  /** The method that identifies the chain, and the response of another chain. */
  identity: { method: string; other: string };
  /** The method that returns receipts or statuses, and the response of a node that has forgotten them. */
  receipts: string;
  forget(answer: RpcResponse): RpcResponse;
  /** Creates a lagging node, once per endpoint. `hear` records every successful response; `ask` answers from the past. */
  lag(): { ask(ask: CallRpc, call: Call): Promise<RpcResponse>; hear(call: Call, answer: RpcResponse): void };
};

/** How many blocks a lagging EVM node is behind. */
const behind = 3;

export const evmCluster: Cluster = {
  send: "eth_sendRawTransaction",
  nameOf: ({ params }) => keccak256(params[0] as Hex),
  identity: { method: "eth_chainId", other: "0x1" },
  receipts: "eth_getTransactionReceipt",
  forget: () => ({ result: null }),
  lag: () => ({ ask: (ask, call) => callLaggingNode(ask, call, behind), hear: () => undefined }),
};

/** A NUL, an escape sequence, half of a surrogate pair, a line feed, and far too much text to store. */
const hostileMessage = `execution reverted: \u0000\u001b[31m\ud83d\nlevel=error ${"x".repeat(20_000)}\udc00`;

type Frame = Call & { id: unknown };

/** Starts a JSON-RPC proxy in front of a chain that fails as configured. */
export async function startFaultyEndpoint({
  target,
  cluster,
}: {
  target: string;
  cluster: Cluster;
}): Promise<Endpoint> {
  const lagging = cluster.lag();
  let faultMode: FaultMode | undefined;
  let affected = 0;
  let limit: Limit | undefined;
  let limited = 0;
  const hanging = new Set<IncomingMessage>();

  const ask = async ({ method, params }: Call): Promise<RpcResponse> => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const { result, error } = JSON.parse(await postJson(target, body)) as RpcResponse;
    const answer = error === undefined ? { result } : { error };
    lagging.hear({ method, params }, answer);
    return answer;
  };
  /** Answers eth_getLogs within the endpoint's limit; undefined when no limit applies. */
  const askWithin = async (call: Call): Promise<RpcResponse | undefined> => {
    const answer = limit && (await callLimitedNode(ask, call, limit));
    if (answer?.error !== undefined) limited += 1;
    return answer;
  };
  const answerOne = async (call: Call): Promise<RpcResponse> => {
    if (!isAffected(cluster, faultMode, call)) return (await askWithin(call)) ?? ask(call);
    affected += 1;
    if (faultMode === "sends hostile error messages") return { error: { code: -32_000, message: hostileMessage } };
    if (faultMode === "lags behind") return lagging.ask(ask, call);
    if (faultMode === "serves another chain") return { result: cluster.identity.other };
    if (faultMode === "forgets receipts") return cluster.forget(await ask(call));
    if (faultMode === "drops accepted transactions") return { result: cluster.nameOf(call) };
    // The caller gets the response to the second delivery.
    if (faultMode === "delivers twice") await ask(call);
    return ask(call);
  };

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { frames, isBatch } = await readFrames(request);
    if (faultMode === "refuses" || faultMode === "hangs" || faultMode?.startsWith("returns")) affected += 1;
    if (faultMode === "refuses") return cut(request);
    if (faultMode === "hangs") return void hanging.add(request);
    if (faultMode === "returns 429") return void response.writeHead(429, { "retry-after": "1" }).end("slow down");
    if (faultMode === "returns 500") return void response.writeHead(500).end("internal error");
    const answers = await Promise.all(
      frames.map(async ({ id, ...call }) => ({ jsonrpc: "2.0", id, ...(await answerOne(call)) })),
    );
    const isSend = frames.some(({ method }) => method === cluster.send);
    if (isSend && faultMode === "loses responses to sends") return cut(request);
    const body = JSON.stringify(isBatch ? answers : answers[0]);
    response.writeHead(200, { "content-type": "application/json" }).end(body);
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(() => cut(request));
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  addCleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${port}`,
    affected: () => affected,
    limitLogs(next) {
      limit = next;
    },
    limited: () => limited,
    setFaultMode(next) {
      faultMode = next;
      affected = 0;
      for (const request of hanging) cut(request);
      hanging.clear();
    },
  };
}

/** Returns whether the failure changes the response to a call that reaches the chain. */
function isAffected(
  { send, identity, receipts }: Cluster,
  faultMode: FaultMode | undefined,
  { method }: Call,
): boolean {
  if (
    faultMode === "loses responses to sends" ||
    faultMode === "delivers twice" ||
    faultMode === "drops accepted transactions"
  )
    return method === send;
  if (faultMode === "serves another chain") return method === identity.method;
  if (faultMode === "forgets receipts") return method === receipts;
  return faultMode === "lags behind" || faultMode === "sends hostile error messages";
}

/** Resets the connection, as a crashed node or a broken network does. */
function cut(request: IncomingMessage): void {
  request.socket.resetAndDestroy();
}

async function readFrames(request: IncomingMessage): Promise<{ frames: Frame[]; isBatch: boolean }> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const parsed = JSON.parse(Buffer.concat(parts).toString("utf8")) as Partial<Frame> | Partial<Frame>[];
  const frames = [parsed].flat().map(({ id, method, params }) => ({ id, method: method ?? "", params: params ?? [] }));
  return { frames, isBatch: Array.isArray(parsed) };
}
