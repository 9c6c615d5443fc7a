import type { Call, CallRpc, RpcResponse } from "./lagging-node.ts";

type Words = (range: { blocks: number; logs: number; from: number }) => string;
/** How many blocks and logs one eth_getLogs may cover, and the error beyond that. */
export type Limit = { code: number; words: Words; blocks: number; logs: number };

const hex = (height: number) => `0x${height.toString(16)}`;

/** The exact errors of real providers; the numbers are the run's. */
export const limits: readonly { code: number; words: Words }[] = [
  {
    // Alchemy
    code: -32_602,
    words: ({ blocks, from }) =>
      `Log response size exceeded. You can make eth_getLogs requests with up to a ${blocks} block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response. Based on your parameters and the response size limit, this block range should work: [${hex(from)}, ${hex(from + blocks - 1)}]`,
  },
  {
    // Infura
    code: -32_005,
    words: ({ logs, blocks, from }) =>
      `query returned more than ${logs} results. Try with this block range [${hex(from).toUpperCase().replace("0X", "0x")}, ${hex(
        from + blocks - 1,
      )
        .toUpperCase()
        .replace("0X", "0x")}].`,
  },
  { code: -32_614, words: ({ blocks }) => `eth_getLogs is limited to a ${blocks} range` }, // QuickNode
  { code: -32_062, words: () => "Block range is too large" }, // Ankr
  { code: -32_005, words: () => "limit exceeded" }, // BNB Smart Chain's public endpoints
  { code: -32_701, words: ({ blocks }) => `exceed maximum block range: ${blocks}` }, // PublicNode
  { code: 35, words: ({ blocks }) => `ranges over ${blocks} blocks are not supported on freetier` }, // dRPC
  { code: -32_600, words: ({ blocks }) => `eth_getLogs block range too large, range: ${blocks + 1}, max: ${blocks}` },
  { code: -32_000, words: () => "query timeout exceeded" }, // Geth behind a load balancer
];

type Filter = { blockHash?: string; fromBlock?: string; toBlock?: string };

/** Answers eth_getLogs as a node with a limit does. Returns undefined for any other method. */
export async function callLimitedNode(ask: CallRpc, call: Call, limit: Limit): Promise<RpcResponse | undefined> {
  if (call.method !== "eth_getLogs") return undefined;
  const { blockHash, fromBlock, toBlock } = call.params[0] as Filter;
  const [from, to] = [Number(fromBlock), Number(toBlock)];
  const refusal = { error: { code: limit.code, message: limit.words({ ...limit, from }) } };
  if (blockHash === undefined && to - from + 1 > limit.blocks) return refusal;
  const answer = await ask(call);
  // Every provider returns a single block completely.
  const isSmall = blockHash !== undefined || from === to;
  return !isSmall && Array.isArray(answer.result) && answer.result.length > limit.logs ? refusal : answer;
}
