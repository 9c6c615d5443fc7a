import type { Chain, Chains } from "../../chains/chain.ts";
import { findUnreadEpoch } from "../../db/epoch.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import { recordDestination } from "../../db/queries/settlements.ts";
import { listUnsentPayouts, type Renewal, renewPayout, type UnsentPayout } from "../../db/queries/unsent-payouts.ts";
import type { Pool } from "../../db/tables.ts";
import type { PayoutRequest } from "../../signer/protocol.ts";
import type { RefusalReason } from "../../signer/refusals.ts";
import type { TreasurySigner } from "../../signer/treasury-signer.ts";
import type { ScreeningDeps } from "../../transfers/list-screening.ts";
import { screenAccounts } from "../../transfers/screen-accounts.ts";
import { requestPayouts } from "./request-payouts.ts";
import { receiverOf } from "./sign-payout.ts";

/**
 * Why a payout is not signed again. `may_be_sent`: it was in a transaction, which its present signature may still make valid.
 * `watcher_behind`: the database has lost commits, and its chain is not read again. `held`, `no_destination`, `not_served`: as when
 * settlements begin. All other reasons are the signer's.
 */
type Reason = RefusalReason | "may_be_sent" | "watcher_behind" | "held" | "no_destination" | "not_served";
/** The number of payouts that are made as the signer has signed them now, and of those that are not, by reason. */
type Renewed = { renewed: number; refused: Partial<Record<Reason, number>> };

type Deps = ScreeningDeps & { db: Pool; now: () => Date; chains: Chains; signer: TreasurySigner };
type Wanted = Pick<Renewal, "payout" | "receiver">;

/**
 * Has payouts that were never sent signed again: those of a treasury that another one has replaced, and those that have failed,
 * because the destination refuses the token or the token's domain has changed. They keep amount and number, so the chain makes each
 * once at most. A settlement goes to the destination that is registered now. Payouts that stay as they were are not counted.
 * The signer refuses those that a former treasury has made. Call it only with a signer that keeps records.
 */
export async function renewPayouts(deps: Deps, actor: AuditActor): Promise<Renewed> {
  const result: Renewed = { renewed: 0, refused: {} };
  const refuse = (reason: Reason) => {
    result.refused[reason] = (result.refused[reason] ?? 0) + 1;
  };
  for (const chain of deps.chains.values()) {
    const wanted = await listWanted(deps, chain, refuse);
    const requests = wanted.map((one) => ({
      request: toRequest(one),
      settlementId: one.payout.settlement_id ?? undefined,
    }));
    for (const [index, answer] of (await requestPayouts(deps, requests)).entries()) {
      const one = wanted[index];
      if (!one) continue;
      const { treasury } = chain;
      if (!answer.ok) refuse(answer.reason);
      else if (await renewOne(deps, actor, { ...one, treasury, signature: answer.signature })) result.renewed += 1;
    }
  }
  return result;
}

/** Returns the payouts of a chain that the signer is asked for. `refuse` gets the reason of each other one. */
async function listWanted(deps: Deps, chain: Chain, refuse: (reason: Reason) => void): Promise<Wanted[]> {
  // A restored database may have lost that a payout was assigned to a transaction.
  const isUnread = (await findUnreadEpoch(deps.db, chain.chain)) !== undefined;
  const unsent = (await listUnsentPayouts(deps.db, chain)).map((payout) => ({
    payout,
    obstacle: isUnread ? ("watcher_behind" as const) : findObstacle(payout),
    receiver: payout.settlement_id === null ? payout.receiver : receiverOf(chain.chain, payout.registered),
  }));
  const ready = unsent.filter(({ obstacle }) => obstacle === undefined);
  const accounts = [...new Set(ready.map(({ receiver }) => receiver))];
  const rejected = accounts.length > 0 ? await screenAccounts(deps, chain, accounts) : new Set();
  for (const { obstacle } of unsent) if (obstacle) refuse(obstacle);
  for (const { receiver } of ready) if (rejected.has(receiver)) refuse("not_served");
  return ready.filter(({ receiver }) => !rejected.has(receiver));
}

function findObstacle({ was_assigned, settlement_id, held, registered }: UnsentPayout): Reason | undefined {
  if (was_assigned) return "may_be_sent";
  if (settlement_id === null) return undefined;
  if (held) return "held";
  return registered === null ? "no_destination" : undefined;
}

/** Writes a renewed payout, its settlement's destination and the audit entry. Returns false if the payout stays as it was. */
async function renewOne({ db, now }: Pick<Deps, "db" | "now">, actor: AuditActor, renewal: Renewal): Promise<boolean> {
  const { payout, treasury, receiver } = renewal;
  return db.transaction().execute(async (db) => {
    if (!(await renewPayout(db, renewal))) return false;
    if (payout.settlement_id !== null && payout.registered !== null)
      await recordDestination(db, { id: payout.settlement_id, destination: payout.registered });
    const before = { payer: payout.payer, receiver: payout.receiver };
    const after = { payer: treasury, receiver };
    const entry = { actor, action: "payout.renewed", subject: payout.id, before, after, at: now() };
    await insertAuditEntries(db, [entry]);
    return true;
  });
}

function toRequest({ payout: { asset, amount, merchant_id, number, payment_id }, receiver }: Wanted): PayoutRequest {
  const paid = { merchantId: merchant_id, number, asset, amount, receiver, deposits: [] };
  return payment_id === null ? { kind: "settlement", ...paid } : { kind: "refund", paymentId: payment_id, ...paid };
}
