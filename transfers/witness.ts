import { readBlock, readHead } from "../chains/evm/blocks.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import type { Range } from "../chains/evm/ranges.ts";
import type { NamedRpc, Rpc } from "../chains/evm/rpc.ts";
import { ChainFault } from "../chains/faults.ts";
import { findBlock, listReaders } from "../db/cursors.ts";
import type { TransferDeps } from "./deps.ts";

/** Blocks in a row that one endpoint was believed for. */
export type Run = Range & { readBy: string | null };

/** Blocks that a second endpoint may be behind before it is passed over, and the least time for it, milliseconds. */
const PATIENCE_BLOCKS = 10;
const PATIENCE_MS = 30_000;

/** Since when the second endpoints of a chain have been behind what was to be confirmed. */
const behindSince = new WeakMap<EvmChain["endpoints"], number>();

/** The blocks of a range, by whom they were read from. */
export async function listRuns(
  deps: Pick<TransferDeps, "db">,
  { chain }: Pick<EvmChain, "chain">,
  range: Range,
): Promise<Run[]> {
  if (range.from > range.to) return [];
  return joinRuns(range, await listReaders(deps.db, { chain, ...range }));
}

/** Pure: the same of what is remembered of the range. Each block stands for those below it. */
export function joinRuns(range: Range, readers: readonly { number: number; readBy: string | null }[]): Run[] {
  const runs: Run[] = [];
  let from = range.from;
  for (const { number, readBy } of [...readers, { number: range.to, readBy: null }]) {
    const to = Math.min(number, range.to);
    const last = runs.at(-1);
    if (to < from) continue;
    if (last && last.readBy === readBy) last.to = to;
    else runs.push({ from, to, readBy });
    from = to + 1;
  }
  return runs;
}

/** The endpoints other than the one that was believed, in their order. */
export function listWitnesses({ endpoints }: Pick<EvmChain, "endpoints">, readBy: string | null): NamedRpc[] {
  return endpoints.filter(({ name }, index) => (readBy === null ? index > 0 : name !== readBy));
}

/**
 * Asks another endpoint how far the chain is final, and compares the block there, or at a height below it, with the one
 * that was read first: its hash and its time, which deadlines go by. Returns the height up to which both agree. Throws
 * ChainFault `endpoints_disagree`.
 */
export async function readWitnessed(
  deps: Pick<TransferDeps, "db">,
  chain: EvmChain,
  { name, rpc }: NamedRpc,
  height: number,
): Promise<number> {
  const final = await readFinal(chain, rpc);
  const upTo = Math.min(final, height);
  const [known, block] = await Promise.all([
    findBlock(deps.db, { chain: chain.chain, number: upTo }),
    readBlock(rpc, upTo),
  ]);
  if (known && (known.hash !== block.hash || known.at.getTime() !== block.at.getTime()))
    throw new ChainFault("endpoints_disagree", { detail: `${name} has another block ${upTo} of ${chain.chain}` });
  return upTo;
}

/** The highest block that an endpoint calls final. */
export async function readFinal({ network }: Pick<EvmChain, "network">, rpc: Rpc): Promise<number> {
  const { finality } = network;
  if (typeof finality === "object") return (await readHead(rpc)) - finality.blocks + 1;
  return (await readBlock(rpc, finality)).number;
}

/** Returns true for an endpoint's word against another's. */
export function isDisagreement(error: unknown): boolean {
  return error instanceof ChainFault && error.code === "endpoints_disagree";
}

/** Counts and logs that an endpoint says something else than was read. Which of the two is right a person has to find out. */
export function noteDisagreement(
  deps: Pick<TransferDeps, "metrics" | "log">,
  { chain }: Pick<EvmChain, "chain">,
  { name }: NamedRpc,
  err: unknown,
): void {
  deps.metrics.endpointDisagreements.inc({ chain, endpoint: name });
  deps.log.error({ chain, endpoint: name, err }, "endpoints disagree about a final block; nothing of it is booked");
}

/** A second endpoint has come after. */
export function noteWitnessed({ endpoints }: Pick<EvmChain, "endpoints">): void {
  behindSince.delete(endpoints);
}

/**
 * Returns true when second endpoints that are behind have been waited for long enough. One that is a few blocks behind only
 * delays; one that is stuck must not stop the chain.
 */
export function isPatienceOver(deps: Pick<TransferDeps, "now">, chain: EvmChain): boolean {
  const now = deps.now().getTime();
  const since = behindSince.get(chain.endpoints) ?? now;
  behindSince.set(chain.endpoints, since);
  return now - since >= Math.max(PATIENCE_MS, PATIENCE_BLOCKS * chain.network.blockMs);
}
