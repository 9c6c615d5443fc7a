import { isTransientChainError } from "../../chains/errors.ts";
import { readFinalHeight } from "../../chains/evm/blocks.ts";
import { type EndpointRpc, isUnavailable, type Rpc } from "../../chains/evm/evm-rpc.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { type Cursor, listBlockSources } from "../../db/queries/chain-cursors.ts";
import { decideFinalHeight } from "../decide-final-height.ts";
import { hasWaitedLongEnough, maxBehindMs, type Waits } from "../endpoint-waits.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/** The final height of the endpoint that is asked first, compared with those of the others. */
type Comparison = {
  /** The endpoint, and the height that it reported last; undefined if it reported none. */
  by: string;
  height: number | undefined;
  /** A greater height of another endpoint, which the first one has not reached since. */
  ahead: number | undefined;
  /** When the first endpoint was last known to be as high as the others (Unix milliseconds). */
  levelAt: number;
};
const comparisons = new WeakMap<EvmChain["endpoints"], Comparison>();

/** Waits for a second endpoint that reports a height as final. */
const loneHeights: Waits = new WeakMap();

/** A final height. `by` is the endpoint that reports it if no other one is known to have reached it. */
export type FinalHeight = { height: number; by: string | undefined };

/**
 * Returns the highest block that is final by the network's policy. A number of blocks is counted from the cursor and not from an
 * unread head. A tag is asked for at one endpoint; the second reading compares each height that it reports. The other endpoints
 * are asked too while the first one reports none, or has been lower than they for as long as an endpoint that is behind is waited
 * for. Then `decideFinalHeight` decides. Large amounts still wait for two. Throws ChainError if no endpoint reports a height.
 */
export async function findFinalHeight(
  deps: Pick<TransferDeps, "db" | "metrics" | "log" | "now">,
  chain: EvmChain,
  cursor: Cursor,
): Promise<FinalHeight> {
  const { network, endpoints } = chain;
  if (typeof network.finality === "object") return countFromCursor(deps, chain, cursor, network.finality.blocks);
  if (endpoints.length < 2) return { height: await readFinalHeight(chain, chain.rpc), by: undefined };
  const { by, value: first } = await chain.readFromOneEndpoint((rpc) => readUnlessUnavailable(chain, rpc));
  const known = noteFirst(deps, chain, { by, height: first instanceof Error ? undefined : first });
  const isDue = deps.now().getTime() - known.levelAt >= maxBehindMs(network.blockMs);
  if (known.height !== undefined && !isDue) return { height: known.height, by };

  const others = endpoints.filter(({ name }) => name !== by);
  const answers = [first, ...(await Promise.all(others.map(({ rpc }) => readIfAnswered(chain, rpc))))];
  const { atOnce, afterWait } = decideFinalHeight(answers.filter((answer) => typeof answer === "number"));
  if (afterWait === undefined) throw first;
  compareFirst(deps, chain, { known, other: afterWait });
  if (atOnce === afterWait) {
    // The time of a height that one endpoint reports alone begins again.
    loneHeights.delete(endpoints);
    return { height: atOnce, by: undefined };
  }
  if (known.height === afterWait) return { height: afterWait, by };
  const wait = { waits: loneHeights, of: endpoints, blockMs: network.blockMs };
  const heights = { wanted: afterWait, reached: atOnce ?? -1 };
  if (!hasWaitedLongEnough(deps, wait, heights)) return { height: atOnce ?? cursor.finalNumber, by: undefined };
  if (cursor.finalNumber < Math.min(afterWait, cursor.number)) {
    deps.metrics.singleEndpointConfirmations.inc({ chain: chain.chain });
    const reported = [by, ...others.map(({ name }) => name)].map((name, index) => {
      const answer = answers[index];
      return [name, answer instanceof Error ? answer.message : answer];
    });
    deps.log.warn(
      { chain: chain.chain, reported: Object.fromEntries(reported) },
      "no second endpoint reports a height as final; one is trusted except for large amounts",
    );
  }
  return { height: afterWait, by: undefined };
}

/** Counts the blocks below the cursor. Only the endpoint that the cursor's block was read from is known to have reached it. */
async function countFromCursor(
  { db }: Pick<TransferDeps, "db">,
  { chain, endpoints }: EvmChain,
  cursor: Cursor,
  blocks: number,
): Promise<FinalHeight> {
  const height = cursor.number - blocks + 1;
  if (endpoints.length < 2 || height <= cursor.finalNumber) return { height, by: undefined };
  const [source] = await listBlockSources(db, { chain, from: cursor.number, to: cursor.number });
  return { height, by: source?.source_endpoint ?? undefined };
}

/** Reads the final height of a second endpoint, and compares the height that the first one has reported with it. */
export async function readComparedHeight(
  deps: Pick<TransferDeps, "now">,
  chain: EvmChain,
  { name, rpc }: EndpointRpc,
): Promise<number> {
  const height = await readFinalHeight(chain, rpc);
  const known = comparisons.get(chain.endpoints);
  if (known?.height !== undefined && name !== known.by) compareFirst(deps, chain, { known, other: height });
  return height;
}

/** Notes the height of the endpoint that is asked first. */
function noteFirst(
  deps: Pick<TransferDeps, "now">,
  chain: EvmChain,
  { by, height }: Pick<Comparison, "by" | "height">,
): Comparison {
  const before = comparisons.get(chain.endpoints) ?? { ahead: undefined, levelAt: deps.now().getTime() };
  const known = { ...before, by, height };
  comparisons.set(chain.endpoints, known);
  if (known.ahead !== undefined) compareFirst(deps, chain, { known, other: known.ahead });
  return known;
}

/** Compares the height of the endpoint that is asked first with that of another one. */
function compareFirst(
  { now }: Pick<TransferDeps, "now">,
  { endpoints }: EvmChain,
  { known, other }: { known: Comparison; other: number },
): void {
  if (known.height === undefined || known.height < other) {
    known.ahead ??= other;
    return;
  }
  known.ahead = undefined;
  known.levelAt = now().getTime();
  loneHeights.delete(endpoints);
}

/** Returns the error of an endpoint that answers without a final height. Throws that of one that is unavailable. */
async function readUnlessUnavailable(chain: EvmChain, rpc: Rpc): Promise<number | Error> {
  return readFinalHeight(chain, rpc).catch((error: Error) => {
    if (isUnavailable(error) || !isTransientChainError(error)) throw error;
    return error;
  });
}

/** Returns the error of an endpoint. */
async function readIfAnswered(chain: EvmChain, rpc: Rpc): Promise<number | Error> {
  return readFinalHeight(chain, rpc).catch((error: Error) => {
    if (!isTransientChainError(error)) throw error;
    return error;
  });
}
