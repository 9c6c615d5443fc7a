import { ChainError } from "../../chains/errors.ts";
import { readBlock } from "../../chains/evm/blocks.ts";
import type { EndpointRpc } from "../../chains/evm/evm-rpc.ts";
import type { BlockRange } from "../../chains/evm/log-ranges.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { findBlock, listBlockSources } from "../../db/queries/chain-cursors.ts";
import { hasWaitedLongEnough, type Waits } from "../endpoint-waits.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { readComparedHeight } from "./final-heights.ts";

/** Consecutive blocks that were first read from one endpoint. */
export type EndpointRun = BlockRange & { sourceEndpoint: string | null };

/** Waits for the second endpoints of a chain, which have not reached a height that was to be confirmed. */
const secondReadings: Waits = new WeakMap();

/** Returns the blocks of a range, grouped by the endpoint that they were read from. */
export async function listBlocksByEndpoint(
  deps: Pick<TransferDeps, "db">,
  { chain }: Pick<EvmChain, "chain">,
  range: BlockRange,
): Promise<EndpointRun[]> {
  if (range.from > range.to) return [];
  return groupByEndpoint(range, await listBlockSources(deps.db, { chain, ...range }));
}

/** Groups the blocks of a range by endpoint. Each stored block stands for those below it that are not stored. */
function groupByEndpoint(
  range: BlockRange,
  readers: readonly { number: number; source_endpoint: string | null }[],
): EndpointRun[] {
  const runs: EndpointRun[] = [];
  let from = range.from;
  for (const { number, source_endpoint: sourceEndpoint } of [...readers, { number: range.to, source_endpoint: null }]) {
    const to = Math.min(number, range.to);
    const last = runs.at(-1);
    if (to < from) continue;
    if (last && last.sourceEndpoint === sourceEndpoint) last.to = to;
    else runs.push({ from, to, sourceEndpoint });
    from = to + 1;
  }
  return runs;
}

/** An endpoint that makes the second reading, and the one that reports the final height for it. */
export type Witness = { endpoint: EndpointRpc; reporter: EndpointRpc };

/**
 * Returns the endpoints other than the one of the first reading, in their order. Each reports its own final height, except the one
 * that alone has reported the height to confirm (`by`): for that, the endpoint of the first reading reports.
 */
export function listWitnesses(
  { endpoints }: Pick<EvmChain, "endpoints">,
  { sourceEndpoint, by }: { sourceEndpoint: string | null; by: string | undefined },
): Witness[] {
  const isReader = ({ name }: EndpointRpc, index: number) =>
    sourceEndpoint === null ? index === 0 : name === sourceEndpoint;
  const reader = endpoints.filter(isReader);
  const others = endpoints.filter((endpoint, index) => !isReader(endpoint, index));
  return others.map((endpoint) => {
    const candidates = [endpoint, ...reader, ...others];
    return { endpoint, reporter: candidates.find(({ name }) => name !== by) ?? endpoint };
  });
}

/**
 * Reads the final height that an endpoint's `reporter` reports. Compares the hash and the time of the endpoint's block there, or at
 * `height` if that is lower, with the block of the first reading; deadlines depend on block times. Returns the height up to which both
 * agree. Throws ChainError `endpoints_disagree`.
 */
export async function compareWithEndpoint(
  deps: Pick<TransferDeps, "db" | "now">,
  chain: EvmChain,
  { endpoint: { name, rpc }, reporter }: Witness,
  height: number,
): Promise<number> {
  const final = await readComparedHeight(deps, chain, reporter);
  const upTo = Math.min(final, height);
  const [known, block] = await Promise.all([
    findBlock(deps.db, { chain: chain.chain, number: upTo }),
    readBlock(rpc, upTo),
  ]);
  if (known && (known.hash !== block.hash || known.at.getTime() !== block.at.getTime()))
    throw new ChainError("endpoints_disagree", { detail: `${name} has another block ${upTo} of ${chain.chain}` });
  return upTo;
}

/** Returns true for an error which says that two endpoints disagree. */
export function isDisagreement(error: unknown): boolean {
  return error instanceof ChainError && error.code === "endpoints_disagree";
}

/** Counts and logs that an endpoint disagrees with the first reading. An operator must find out which of them is right. */
export function recordDisagreement(
  deps: Pick<TransferDeps, "metrics" | "log">,
  { chain }: Pick<EvmChain, "chain">,
  { name }: EndpointRpc,
  err: unknown,
): void {
  deps.metrics.endpointDisagreements.inc({ chain, endpoint: name });
  deps.log.error({ chain, endpoint: name, err }, "endpoints disagree about a final block; it is not booked");
}

/** Ends the wait for a second endpoint: none is behind any more, or two agree. The time begins again. */
export function endWaitForSecond({ endpoints }: Pick<EvmChain, "endpoints">): void {
  secondReadings.delete(endpoints);
}

/**
 * Returns true when the second endpoints of a chain have been behind for too long.
 * @param heights see `hasWaitedLongEnough`
 */
export function hasWaitedForSecond(
  deps: Pick<TransferDeps, "now">,
  { endpoints, network: { blockMs } }: EvmChain,
  heights: { wanted: number; reached: number },
): boolean {
  return hasWaitedLongEnough(deps, { waits: secondReadings, of: endpoints, blockMs }, heights);
}
