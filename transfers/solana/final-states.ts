import { type FinalizedState, readFinal, readFinalFromEach } from "../../chains/solana/cluster-state.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { decideFinalHeight } from "../decide-final-height.ts";
import { hasWaitedLongEnough, type Waits } from "../endpoint-waits.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { runBesidePasses } from "./beside-passes.ts";

/** Waits for a second endpoint that has reached a final slot. */
const loneSlots: Waits = new WeakMap();

const beside = runBesidePasses<Awaited<ReturnType<typeof readFinalFromEach>>>();

/**
 * Returns the newest final slot and block height that count, as on EVM (`decideFinalHeight`): an endpoint can follow the head while its
 * final slot stands still. Endpoints that do not answer are left out, and delay the pass only briefly. Throws ChainError.
 */
export async function findFinalState(
  deps: Pick<TransferDeps, "metrics" | "log" | "now">,
  chain: SolanaChain,
): Promise<FinalizedState> {
  const isOnly = chain.network.rpc.length < 2;
  const reported = isOnly ? [] : ((await beside(chain, () => readFinalFromEach(chain))) ?? []);
  const [first] = reported;
  if (first === undefined) return readFinal(chain);
  if (reported.length < 2) return first;
  const slots = decideFinalHeight(reported.map(({ slot }) => slot));
  const heights = decideFinalHeight(reported.map(({ height }) => height));
  const [wanted, reached] = [slots.afterWait ?? 0, slots.atOnce ?? 0];
  const wait = { waits: loneSlots, of: chain.rpc, blockMs: chain.network.slotMs };
  const isLone = hasWaitedLongEnough(deps, wait, { wanted, reached }) && wanted > reached;
  if (!isLone) return { slot: reached, height: heights.atOnce ?? 0 };
  deps.metrics.singleEndpointConfirmations.inc({ chain: chain.chain });
  deps.log.warn(
    { chain: chain.chain, reported: Object.fromEntries(reported.map(({ by, slot }) => [by, slot])) },
    "no second endpoint reports a height as final; one is trusted except for large amounts",
  );
  return { slot: wanted, height: heights.afterWait ?? 0 };
}
