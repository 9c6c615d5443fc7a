import type { Call, CallRpc, RpcResponse } from "./lagging-node.ts";

/**
 * How `safe` and `finalized` advance: both jump to the last multiple of `step` that is at least `depth` blocks below the head,
 * or both stand still at a height.
 */
export type BlockTags = { step: number; depth: number } | { at: number };

/** What a call costs, in compute units. The proportions are those of Alchemy's table; every provider has a similar one. */
export function computeUnits(method: string): number {
  return units[method] ?? 15;
}

const units: Readonly<Record<string, number>> = {
  eth_chainId: 0,
  eth_blockNumber: 10,
  eth_getBlockByNumber: 20,
  eth_getTransactionReceipt: 20,
  eth_getTransactionCount: 20,
  eth_call: 26,
  eth_sendRawTransaction: 40,
  eth_getLogs: 60,
  eth_getBlockReceipts: 500,
};

const toHex = (height: number) => `0x${Math.max(0, height).toString(16)}`;
const readHead = async (ask: CallRpc) => Number((await ask({ method: "eth_blockNumber", params: [] })).result);

/** Answers blocks by the tags `safe` and `finalized`. Returns undefined for any other call. */
export async function callTaggedNode(ask: CallRpc, call: Call, tags: BlockTags): Promise<RpcResponse | undefined> {
  const [which, full] = call.params;
  if (call.method !== "eth_getBlockByNumber" || (which !== "safe" && which !== "finalized")) return undefined;
  const height = "at" in tags ? tags.at : Math.floor(((await readHead(ask)) - tags.depth) / tags.step) * tags.step;
  return ask({ method: call.method, params: [toHex(height), full] });
}

/**
 * Answers receipts with null until their block is old enough. Returns undefined for any other call.
 * @param state.seenAt when each block was first named by a receipt
 */
export async function callYoungNode(
  ask: CallRpc,
  call: Call,
  { seenAt, ageMs }: { seenAt: Map<number, number>; ageMs: number },
): Promise<RpcResponse | undefined> {
  if (call.method !== "eth_getTransactionReceipt") return undefined;
  const answer = await ask(call);
  const { blockNumber } = (answer.result ?? {}) as { blockNumber?: string };
  if (blockNumber === undefined) return answer;
  const number = Number(blockNumber);
  const since = seenAt.get(number) ?? performance.now();
  seenAt.set(number, since);
  return performance.now() - since < ageMs ? { result: null } : answer;
}

type Filter = { blockHash?: string; fromBlock?: string; toBlock?: string };

/** Refuses what a pruned node has lost. Returns undefined for what it still has. */
export async function callPrunedNode(ask: CallRpc, call: Call, below: number): Promise<RpcResponse | undefined> {
  const error = { error: { code: 4_444, message: "pruned history unavailable" } };
  if (call.method === "eth_getLogs") {
    const { blockHash, fromBlock } = call.params[0] as Filter;
    if (blockHash === undefined) return Number(fromBlock) < below ? error : undefined;
    const block = (await ask({ method: "eth_getBlockByHash", params: [blockHash, false] })).result;
    return Number((block as { number?: string } | null)?.number ?? below) < below ? error : undefined;
  }
  if (call.method !== "eth_getTransactionReceipt") return undefined;
  const { blockNumber } = ((await ask(call)).result ?? {}) as { blockNumber?: string };
  return blockNumber !== undefined && Number(blockNumber) < below ? { result: null } : undefined;
}

/** Refuses ranges beyond the node's head with Geth's error. Returns undefined for any other call. */
export async function refuseFutureRange(ask: CallRpc, call: Call): Promise<RpcResponse | undefined> {
  const { blockHash, toBlock } = (call.params[0] ?? {}) as Filter;
  if (call.method !== "eth_getLogs" || blockHash !== undefined) return undefined;
  const head = await readHead(ask);
  if (Number(toBlock) <= head) return undefined;
  const message = `block range extends beyond current head block: requested ${Number(toBlock)}, head ${head}`;
  return { error: { code: -32_602, message } };
}
