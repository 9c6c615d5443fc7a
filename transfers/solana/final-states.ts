import { setTimeout as delay } from "node:timers/promises";
import {
  askFinalOfEach,
  type FinalizedState,
  type ReportedState,
  readFinal,
  readSlotTime,
} from "../../chains/solana/cluster-state.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { decideFinalHeight } from "../decide-final-height.ts";
import { endLostWait, hasWaitedLongEnough, type Waits } from "../endpoint-waits.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/** How long a pass waits for the endpoints, milliseconds. */
const PASS_WAIT_MS = 1_000;
/** How long an endpoint's answer counts for the passes that it did not answer in time, milliseconds. */
const ANSWER_KEPT_MS = 5_000;
/** Waits for a second endpoint that has reached a final slot. A pass leaves out endpoints that a longer read hears, so each has its own. */
const [passWaits, readWaits]: [Waits, Waits] = [new WeakMap(), new WeakMap()];

type Deps = Pick<TransferDeps, "metrics" | "log" | "now">;
type Reported = readonly ReportedState[];
/** The last answer of each endpoint to a pass, and when it came. */
type LastAnswers = Map<string, ReportedState & { at: number }>;
const lastAnswers = new WeakMap<SolanaChain["rpc"], LastAnswers>();

/**
 * Returns the newest final slot and block height that count, as on EVM (`decideFinalHeight`): an endpoint can follow the head while its
 * final slot stands still. Leaves out endpoints that do not answer, and waits for them as long as a call may take. Throws ChainError.
 */
export async function readFinalState(deps: Deps, chain: SolanaChain): Promise<FinalizedState> {
  const reported: ReportedState[] = [];
  const onAsked = (_by: string, answer: Promise<ReportedState>) =>
    void answer.then((one) => reported.push(one)).catch(() => undefined);
  if (!isOnly(chain)) await askFinalOfEach(chain, onAsked);
  return decide(deps, chain, { reported, waits: readWaits });
}

/**
 * Like `readFinalState`, for a pass: waits a second for the endpoints. An answer that comes later counts for the next passes, so that
 * an endpoint that is always late is heard as well.
 */
export async function findFinalState(deps: Deps, chain: SolanaChain): Promise<FinalizedState> {
  const reported = isOnly(chain) ? [] : await hearEach(deps, chain);
  return decide(deps, chain, { reported, waits: passWaits });
}

async function hearEach({ now }: Pick<Deps, "now">, chain: SolanaChain): Promise<Reported> {
  const answers: LastAnswers = lastAnswers.get(chain.rpc) ?? new Map();
  lastAnswers.set(chain.rpc, answers);
  const heard = new Set<string>();
  const late = new Set<string>();
  const onAsked = (by: string, answer: Promise<ReportedState>) => {
    late.add(by);
    const keep = (one: ReportedState) => {
      answers.set(by, { ...one, at: now().getTime() });
      heard.add(by);
    };
    void answer.then(keep, () => answers.delete(by)).finally(() => late.delete(by));
  };
  const all = askFinalOfEach(chain, onAsked);
  await Promise.race([all, delay(PASS_WAIT_MS, undefined, { ref: false })]);
  const since = now().getTime() - ANSWER_KEPT_MS;
  return [...answers.values()].filter(({ by, at }) => heard.has(by) || (late.has(by) && at >= since));
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
