import { type FinalizedState, readFinal, readFinalFromEach, readSlotTime } from "../../chains/solana/cluster-state.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { decideFinalHeight } from "../decide-final-height.ts";
import { endLostWait, hasWaitedLongEnough, type Waits } from "../endpoint-waits.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/** How long a pass waits for the endpoints, milliseconds. */
const PASS_WAIT_MS = 1_000;
/** Waits for a second endpoint that has reached a final slot. A pass leaves out endpoints that a longer read hears, so each has its own. */
const [passWaits, readWaits]: [Waits, Waits] = [new WeakMap(), new WeakMap()];

type Deps = Pick<TransferDeps, "metrics" | "log" | "now">;
type Reported = Awaited<ReturnType<typeof readFinalFromEach>>;

/**
 * Returns the newest final slot and block height that count, as on EVM (`decideFinalHeight`): an endpoint can follow the head while its
 * final slot stands still. Leaves out endpoints that do not answer, and waits for them as long as a call may take. Throws ChainError.
 */
export async function readFinalState(deps: Deps, chain: SolanaChain): Promise<FinalizedState> {
  return decide(deps, chain, { reported: isOnly(chain) ? [] : await readFinalFromEach(chain), waits: readWaits });
}

/** Like `readFinalState`, for a pass: leaves out endpoints that do not answer within a second. */
export async function findFinalState(deps: Deps, chain: SolanaChain): Promise<FinalizedState> {
  const reported = isOnly(chain) ? [] : await readFinalFromEach(chain, PASS_WAIT_MS);
  return decide(deps, chain, { reported, waits: passWaits });
}

const isOnly = (chain: SolanaChain) => chain.network.rpc.length < 2;

async function decide(
  deps: Deps,
  chain: SolanaChain,
  { reported, waits }: { reported: Reported; waits: Waits },
): Promise<FinalizedState> {
  const [first, second] = reported;
  if (first === undefined) return readFinal(chain);
  if (second === undefined) {
    countAlone(deps, chain, reported);
    return first;
  }
  const slots = decideFinalHeight(reported.map(({ slot }) => slot));
  const heights = decideFinalHeight(reported.map(({ height }) => height));
  const [wanted, reached] = [slots.afterWait ?? 0, slots.atOnce ?? 0];
  const wait = { waits, of: chain.rpc, blockMs: chain.network.slotMs };
  endLostWait(wait, wanted);
  const hasWaited = hasWaitedLongEnough(deps, wait, { wanted, reached }) && wanted > reached;
  // An endpoint may report a slot that no endpoint serves.
  const isLone = hasWaited && (await readSlotTime(chain, wanted)) !== undefined;
  if (!isLone) return { slot: reached, height: heights.atOnce ?? 0 };
  countAlone(deps, chain, reported);
  return { slot: wanted, height: heights.afterWait ?? 0 };
}

function countAlone(deps: Deps, chain: SolanaChain, reported: Reported): void {
  deps.metrics.singleEndpointConfirmations.inc({ chain: chain.chain });
  deps.log.warn(
    { chain: chain.chain, reported: Object.fromEntries(reported.map(({ by, slot }) => [by, slot])) },
    "no second endpoint reports a height as final; one is trusted except for large amounts",
  );
}
