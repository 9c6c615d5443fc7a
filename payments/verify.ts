import { sql } from "kysely";
import { type Hex, hexToBytes } from "viem";
import { type AttemptRow, findAttemptWhole } from "../db/attempts.ts";
import { moveRows } from "../db/moves.ts";
import type { OptionRow } from "../db/options.ts";
import type { PaymentRow } from "../db/payments.ts";
import { insertTransfers } from "../db/transfers.ts";
import type { Verdict, Verifier } from "../transfers/verify.ts";
import type { PaymentDeps } from "./deps.ts";
import { newId } from "./ids.ts";

/** After this the sweep rings again for a transfer that no lane has taken, milliseconds. */
const RING_AGAIN_MS = 2_000;

type Whole = { attempt: AttemptRow; option: OptionRow; payment: PaymentRow };

/**
 * Judges an attempt, once: a good one moves its payment to `processing` and makes its transfer, a bad one is refused
 * and leaves the payment as it is, so that whoever merely saw the link can neither kill nor block it.
 * Throws what the chain throws when it cannot be asked; the attempt then waits.
 */
export async function verifyAttempt(deps: PaymentDeps & { verifier: Verifier }, attemptId: string): Promise<void> {
  const whole = await findAttemptWhole(deps.db, attemptId);
  if (whole?.attempt.state !== "waiting") return;
  const signature = readSignature(whole.attempt.results);
  const verdict = await judge(deps, whole, signature);
  if (!verdict.ok) return refuseAttempt(deps, whole, verdict.reason);
  if (whole.payment.mode === "test") return succeedInTestMode(deps, whole);

  const transferId = newId("trf");
  const accepted = await deps.db.transaction().execute(async (db) => {
    if (!(await acceptAttempt(deps, db, whole))) return false;
    const { option, payment } = whole;
    const row = {
      id: transferId,
      purpose: "payment" as const,
      payment_id: payment.id,
      settlement_id: null,
      chain: option.chain,
      asset: option.asset,
      token: option.token,
      payer: option.payer,
      receiver: option.receiver,
      amount: option.amount,
      authorization_nonce: option.authorization_nonce,
      valid_before: option.valid_before,
      signature: Buffer.from(hexToBytes(signature)),
      lane_id: null,
      lane_nonce: null,
      hold_until: null,
      last_trouble: null,
      due_at: new Date(deps.now().getTime() + RING_AGAIN_MS),
    };
    await insertTransfers(db, [row], deps.now());
    return true;
  });
  if (!accepted) return refuseAttempt(deps, whole, "the payment is no longer waiting");
  countAccepted(deps, whole);
  await deps.ring("relay-permit", [{ data: { transferId } }]);
  await deps.announce([whole.payment.id]);
}

async function judge(
  deps: PaymentDeps & { verifier: Verifier },
  { payment, option }: Whole,
  signature: Hex,
): Promise<Verdict> {
  if (payment.state !== "requires_action") return { ok: false, reason: `the payment is ${payment.state}` };
  const signed = { ...option, signature };
  // Nothing of test mode ever meets a chain.
  return payment.mode === "test" ? deps.verifier.checkSignature(signed) : deps.verifier.verify(signed);
}

/** The guarded move that decides who pays: before the deadline, while the payment waits, one attempt only. */
async function acceptAttempt(
  deps: PaymentDeps,
  db: Parameters<typeof moveRows>[0],
  { attempt, payment }: Whole,
): Promise<boolean> {
  const at = deps.now();
  const moved = await moveRows(db, "payment", {
    ids: [payment.id],
    from: "requires_action",
    to: "processing",
    at,
    where: sql`expires_at > ${at}`,
    set: { due_at: null },
    detail: { attempt: attempt.id },
  });
  if (moved.length === 0) return false;
  const verified = await moveRows(db, "attempt", {
    ids: [attempt.id],
    from: "waiting",
    to: "verified",
    at,
    set: { due_at: null },
  });
  if (verified.length === 0) throw new Error(`attempt ${attempt.id} was judged while its payment waited for it`);
  return true;
}

async function refuseAttempt(deps: PaymentDeps, { attempt, payment }: Whole, reason: string): Promise<void> {
  await deps.db.transaction().execute((db) =>
    moveRows(db, "attempt", {
      ids: [attempt.id],
      from: "waiting",
      to: "refused",
      at: deps.now(),
      set: { refusal: reason, due_at: null },
      detail: { reason },
    }),
  );
  deps.metrics.attempts.inc({ outcome: "refused" });
  await deps.announce([payment.id]);
}

/** Test mode moves no funds: what was confirmed has succeeded (specification, part 1 and 2.2). */
async function succeedInTestMode(deps: PaymentDeps, whole: Whole): Promise<void> {
  const { payment, option } = whole;
  const accepted = await deps.db.transaction().execute(async (db) => {
    if (!(await acceptAttempt(deps, db, whole))) return false;
    const set = { tx_id: `test:${payment.id}`, paid_asset: option.asset, paid_amount: option.amount };
    await moveRows(db, "payment", { ids: [payment.id], from: "processing", to: "succeeded", at: deps.now(), set });
    return true;
  });
  if (!accepted) return refuseAttempt(deps, whole, "the payment is no longer waiting");
  countAccepted(deps, whole);
  deps.metrics.paymentMoves.inc({ mode: "test", from: "processing", to: "succeeded" });
  await deps.announce([payment.id]);
}

function countAccepted(deps: PaymentDeps, { payment }: Whole): void {
  deps.metrics.attempts.inc({ outcome: "verified" });
  deps.metrics.paymentMoves.inc({ mode: payment.mode, from: "requires_action", to: "processing" });
}

/** The signature among stored results, whose form was checked before they were stored. */
function readSignature(results: unknown): Hex {
  const [result] = results as { data: string[] }[];
  return (result?.data[0] ?? "0x") as Hex;
}
