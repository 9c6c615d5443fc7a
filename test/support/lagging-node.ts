export type Call = { method: string; params: readonly unknown[] };
export type RpcResponse = { result?: unknown; error?: { code: number; message: string } };
export type CallRpc = (call: Call) => Promise<RpcResponse>;

type Placed = { blockNumber?: string; number?: string } | null;
type Filter = { blockHash?: string; fromBlock?: string; toBlock?: string };

const toHex = (height: number) => `0x${Math.max(0, height).toString(16)}`;
/** The index of the block parameter of each read method. */
const blockParameterIndex: Record<string, number> = {
  eth_call: 1,
  eth_getBalance: 1,
  eth_getCode: 1,
  eth_getTransactionCount: 1,
  eth_getStorageAt: 2,
};

/** Answers as a node does that is `behind` blocks behind: newer blocks, their logs and their receipts do not exist yet. */
export async function callLaggingNode(ask: CallRpc, call: Call, behind: number): Promise<RpcResponse> {
  const { method, params } = call;
  const head = Number((await ask({ method: "eth_blockNumber", params: [] })).result) - behind;
  const place = blockParameterIndex[method];
  if (method === "eth_blockNumber") return { result: toHex(head) };
  if (method === "eth_getLogs") return askLogs(ask, params[0] as Filter, head);
  if (method === "eth_getBlockByNumber") {
    const [which, full] = params;
    const height = which === "latest" || which === "pending" ? head : Number(which);
    return height > head
      ? { result: null }
      : ask({ method, params: [Number.isNaN(height) ? which : toHex(height), full] });
  }
  if (place !== undefined) {
    const which = params[place];
    if (typeof which !== "string" || which === "latest" || which === "pending")
      return ask({ method, params: params.toSpliced(place, 1, toHex(head)) });
    return Number(which) > head ? { error: { code: -32_000, message: "header not found" } } : ask(call);
  }
  const answer = await ask(call);
  if (!/^eth_get(BlockByHash|Transaction)/.test(method)) return answer;
  const found = answer.result as Placed;
  return Number(found?.blockNumber ?? found?.number ?? 0) > head ? { result: null } : answer;
}

/** Answers an unknown block with an error and a range with its known part, as real nodes do. */
async function askLogs(ask: CallRpc, filter: Filter, head: number): Promise<RpcResponse> {
  const method = "eth_getLogs";
  if (filter.blockHash !== undefined) {
    const block = (await ask({ method: "eth_getBlockByHash", params: [filter.blockHash, false] })).result as Placed;
    const isKnown = block !== null && Number(block.number) <= head;
    return isKnown ? ask({ method, params: [filter] }) : { error: { code: -32_000, message: "unknown block" } };
  }
  if (Number(filter.fromBlock) > head) return { result: [] };
  const last = Number(filter.toBlock);
  return ask({ method, params: [{ ...filter, toBlock: toHex(last <= head ? last : head) }] });
}
