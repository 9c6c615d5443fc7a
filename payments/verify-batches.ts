import { listWaitingAttempts, type WholeAttempt } from "../db/attempts.ts";
import { batchCalls } from "../db/together.ts";
import { type End, type VerifyDeps, verifyTogether } from "./verify.ts";

/** Contract wallets asked at the same time. */
const WALLETS = 16;
/** Attempts judged in one go, and how often those of a place are, milliseconds: under load they share calls and commits. */
const JUDGED = 100;
const JUDGE_EVERY_MS = 100;

/**
 * Makes what judges an attempt, once: a good one moves its payment to `processing` and makes its transfer, a bad one is
 * refused and leaves the payment as it is, so that whoever merely saw the link can neither kill nor block it.
 * Returns `by code` for an attempt whose payer turned out to be code: it is verified as a contract wallet's when it is
 * enqueued again. Throws what the chain throws when it cannot be asked; the attempt then waits. Those of a chain that come while some
 * are judged are judged together afterwards; no chain waits for another.
 */
export function createVerify(
  deps: VerifyDeps & { isTransient: (cause: unknown) => boolean; outOfContext: <T>(work: () => T) => T },
): (attemptId: string) => Promise<"done" | "by code"> {
  const shared = { most: JUDGED, isOnes: (cause: unknown) => !deps.isTransient(cause) };
  const find = batchCalls(async (ids: string[]) => {
    const waiting = await deps.outOfContext(() => listWaitingAttempts(deps.db, ids));
    const byId = new Map(waiting.map((whole) => [whole.attempt.id, whole]));
    return ids.map((id) => byId.get(id));
  }, shared);
  const judges = new Map<string, (whole: WholeAttempt) => Promise<End>>();
  const payerOf = ({ option }: WholeAttempt) => option.payer;
  const makeJudge = (isWallet: boolean) =>
    batchCalls(
      async (group: WholeAttempt[]) => {
        // Two jobs of one attempt may have met: the sweep's and the first one.
        const once = new Map(group.map((whole) => [whole.attempt.id, whole]));
        const ends = await deps.outOfContext(() => verifyTogether(deps, [...once.values()]));
        return group.map(({ attempt }) => ends.get(attempt.id) ?? {});
      },
      isWallet ? { ...shared, most: WALLETS, keyOf: payerOf } : { ...shared, everyMs: JUDGE_EVERY_MS },
    );
  return async (attemptId) => {
    const whole = await find(attemptId);
    if (!whole) return "done";
    const place = placeOf(whole);
    const judge = judges.get(place) ?? makeJudge(whole.attempt.verification === "wallet");
    judges.set(place, judge);
    const end = await judge(whole);
    if ("error" in end) throw end.error;
    return end.byCode ? "by code" : "done";
  };
}

/** Attempts of one place are judged together: plain keys wait neither for code nor for what wallets say to have sent. */
function placeOf({ payment, option, attempt }: WholeAttempt): string {
  return `${payment.mode} ${option.chain} ${attempt.verification}`;
}
