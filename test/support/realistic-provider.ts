import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { postJson } from "../../local/post-json.ts";
import { type Call, type CallRpc, callLaggingNode, type RpcResponse } from "./lagging-node.ts";
import { listen } from "./listen.ts";
import { callLimitedNode, type Limit } from "./log-limits.ts";
import {
  type BlockTags,
  callPrunedNode,
  callTaggedNode,
  callYoungNode,
  computeUnits,
  refuseFutureRange,
} from "./provider-rules.ts";

/** What a provider limits and how its nodes behave. A member that is missing does not apply. */
export type ProviderRules = {
  /** Blocks and logs of one eth_getLogs, with a provider's words. Single blocks are answered completely. */
  logs?: Limit;
  /** Answers no eth_getLogs at all, not even for one block, with this error. */
  logsRefused?: { code: number; message: string };
  /** Methods that the provider does not have. */
  missing?: readonly string[];
  /** Most calls in one batch. */
  batch?: number;
  /** Compute units per second. Further calls get the status 429, with a JSON-RPC error in its body if `json` is set. */
  budget?: {
    units: number;
    retryAfterSeconds?: number | undefined;
    json?: { code: number; message: string } | undefined;
  };
  /** Every `every`th request is answered after this many milliseconds. */
  hang?: { ms: number; every: number };
  /** How many blocks each node behind the URL is behind the chain; requests go to them in no order. */
  nodes?: readonly number[];
  /** The provider stops following the chain at this height. */
  stopsAt?: number;
  /** The nodes refuse ranges beyond their head, as Geth does since 2025; otherwise they answer with the part they have. */
  refusesFuture?: boolean;
  /** Receipts are null until their block is this old, milliseconds. */
  receiptsAfterMs?: number;
  /** How `safe` and `finalized` advance. */
  tags?: BlockTags;
  /** Blocks below this height have no logs, receipts and states. */
  prunedBelow?: number;
};

/**
 * What a provider has done since the start: calls by method, calls that it refused by rule, compute units, bytes of its
 * answers, and the blocks of each range whose logs were asked for.
 */
export type ProviderCounts = {
  ranges: number[];
  calls: Record<string, number>;
  refused: Record<string, number>;
  units: number;
  bytes: number;
};

/** Starts a JSON-RPC proxy in front of a chain that has the limits and the nodes of a real provider. */
export async function startRealisticProvider({ target, ...first }: { target: string } & ProviderRules) {
  let rules: ProviderRules = first;
  const counts: ProviderCounts = { ranges: [], calls: {}, refused: {}, units: 0, bytes: 0 };
  const bucket = { left: Number.POSITIVE_INFINITY, at: performance.now() };
  const seenAt = new Map<number, number>();
  let requests = 0;

  const refuse = (rule: keyof ProviderRules) => {
    counts.refused[rule] = (counts.refused[rule] ?? 0) + 1;
  };
  const ask: CallRpc = async ({ method, params }) => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const { result, error } = JSON.parse(await postJson(target, body)) as RpcResponse;
    return error === undefined ? { result } : { error };
  };
  /** Returns whether the budget of this second has room for these units, and spends them. */
  const spend = (units: number, perSecond: number): boolean => {
    const now = performance.now();
    bucket.left = Math.min(perSecond, bucket.left + ((now - bucket.at) / 1_000) * perSecond);
    bucket.at = now;
    if (bucket.left < units) return false;
    bucket.left -= units;
    return true;
  };
  const countBehind = async (): Promise<number> => {
    const { nodes = [0], stopsAt } = rules;
    if (stopsAt === undefined) return nodes[pick(requests) % nodes.length] ?? 0;
    return Math.max(0, Number((await ask({ method: "eth_blockNumber", params: [] })).result) - stopsAt);
  };
  const answer = async (call: Call, behind: number): Promise<RpcResponse> => {
    const node: CallRpc = (one) => (behind > 0 ? callLaggingNode(ask, one, behind) : ask(one));
    const { tags, receiptsAfterMs, prunedBelow, logs } = rules;
    if (rules.missing?.includes(call.method)) {
      refuse("missing");
      return { error: { code: -32_601, message: `the method ${call.method} does not exist/is not available` } };
    }
    const logsRefused = call.method === "eth_getLogs" ? rules.logsRefused : undefined;
    if (logsRefused) {
      refuse("logsRefused");
      return { error: logsRefused };
    }
    const future = rules.refusesFuture ? await refuseFutureRange(node, call) : undefined;
    if (future) refuse("refusesFuture");
    const pruned = future ?? (prunedBelow === undefined ? undefined : await callPrunedNode(ask, call, prunedBelow));
    if (!future && pruned) refuse("prunedBelow");
    if (pruned) return pruned;
    const limited = logs && (await callLimitedNode(node, call, logs));
    if (limited?.error) refuse("logs");
    return (
      limited ??
      (tags && (await callTaggedNode(node, call, tags))) ??
      (receiptsAfterMs === undefined
        ? undefined
        : await callYoungNode(node, call, { seenAt, ageMs: receiptsAfterMs })) ??
      node(call)
    );
  };

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { frames, isBatch } = await readFrames(request);
    requests += 1;
    const send = (status: number, body: string, headers: Record<string, string> = {}) => {
      counts.bytes += Buffer.byteLength(body);
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
    };
    const all = (error: { code: number; message: string }) => {
      const answers = frames.map(({ id }) => ({ jsonrpc: "2.0", id, error }));
      return JSON.stringify(isBatch ? answers : answers[0]);
    };
    for (const { method, params } of frames) {
      counts.calls[method] = (counts.calls[method] ?? 0) + 1;
      const { fromBlock, toBlock } = (params[0] ?? {}) as { fromBlock?: string; toBlock?: string };
      if (method === "eth_getLogs" && fromBlock !== undefined)
        counts.ranges.push(Number(toBlock) - Number(fromBlock) + 1);
    }
    const units = frames.reduce((sum, { method }) => sum + computeUnits(method), 0);
    counts.units += units;
    const { budget, batch, hang } = rules;
    if (budget && !spend(units, budget.units)) {
      refuse("budget");
      const { retryAfterSeconds: seconds, json } = budget;
      return send(
        429,
        json ? all(json) : "Too Many Requests",
        seconds === undefined ? {} : { "retry-after": `${seconds}` },
      );
    }
    if (batch !== undefined && frames.length > batch) {
      refuse("batch");
      return send(200, all({ code: -32_005, message: "Number of requests exceeds max batch size" }));
    }
    const behind = await countBehind();
    if (hang && requests % hang.every === 0) {
      refuse("hang");
      await new Promise((resolve) => setTimeout(resolve, hang.ms).unref());
    }
    const answers = await Promise.all(
      frames.map(async ({ id, ...call }) => ({ jsonrpc: "2.0", id, ...(await answer(call, behind)) })),
    );
    send(200, JSON.stringify(isBatch ? answers : answers[0]));
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(() => request.socket.resetAndDestroy());
  });
  return {
    url: await listen(server),
    counts,
    /** Replaces all rules. */
    setRules(next: ProviderRules) {
      rules = next;
    },
    /** Makes the node restart with an older head: it is this many blocks behind until the rules are set again. */
    restart(behind: number) {
      rules = { ...rules, nodes: [behind] };
    },
  };
}

/** Returns a number that looks random, and is the same in every run. */
const pick = (request: number) => Math.floor((Math.sin(request) + 1) * 100_000);

type Frame = Call & { id: unknown };

async function readFrames(request: IncomingMessage): Promise<{ frames: Frame[]; isBatch: boolean }> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const parsed = JSON.parse(Buffer.concat(parts).toString("utf8")) as Frame | Frame[];
  const frames = Array.isArray(parsed) ? parsed : [parsed];
  return { frames: frames.map((frame) => ({ ...frame, params: frame.params ?? [] })), isBatch: Array.isArray(parsed) };
}
