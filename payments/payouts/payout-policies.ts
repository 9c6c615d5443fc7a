import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import {
  findDestination,
  findPayoutPolicy,
  listAcceptedAssets,
  updateDestination,
} from "../../db/queries/destinations.ts";
import { findPayoutHolds, recordPayoutHold } from "../../db/queries/merchants.ts";
import type { Db } from "../../db/tables.ts";
import type { Network } from "../../runtime/networks/read-networks.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { noSuchDestination, withMerchantLock } from "../merchants/destinations.ts";
import type { Owner } from "../merchants/merchants.ts";
import type { PaymentDeps } from "../payment-deps.ts";

type Deps = Pick<PaymentDeps, "db" | "now"> & Partial<Pick<PaymentDeps, "networks">>;

/** Default amount at which an accumulating settlement is paid out, whole units of the asset. */
const DEFAULT_UNITS = 1_000n;

/**
 * When an accumulating settlement is paid out: after `ms` milliseconds from its first payment, or when it reaches
 * `amount` (minor units; by default 1,000 units of the asset), whichever comes first, and never below `minimum`.
 */
export type PayoutSchedule = { ms: number; amount?: bigint | undefined; minimum?: bigint | undefined };
export type PolicyView = {
  id: string;
  asset: string;
  seconds: number | null;
  amount: bigint | null;
  minimum: bigint | null;
};

/**
 * Sets the payout schedule of a destination: one transfer for several payments, or without `schedule` one transfer per
 * payment. A settlement that already accumulates keeps its due time. Refuses with `merchant_not_found`, and with
 * `params_validation` when the amount is unset and no configured network has the asset, or when the minimum is above
 * the amount.
 */
export async function setPayoutSchedule(
  deps: Deps,
  args: Owner & { actor: AuditActor; merchantId: string; id: string; schedule: PayoutSchedule | undefined },
): Promise<Result<PolicyView>> {
  const { merchantId, id, schedule } = args;
  return withMerchantLock(deps, args, async (db) => {
    const row = await findDestination(db, { merchantId, id });
    if (!row) return noSuchDestination();
    const amount = schedule && (schedule.amount ?? defaultAmount(deps, row.asset));
    if (schedule && amount === undefined)
      return refuse("params_validation", `amount: is required, because ${row.asset} is not in the networks file`);
    if (schedule?.minimum !== undefined && amount !== undefined && schedule.minimum > amount)
      return refuse("params_validation", "minimum: is above the amount at which a settlement is paid out");
    const policy = {
      accumulation_ms: schedule?.ms ?? null,
      accumulation_amount: amount ?? null,
      minimum: schedule?.minimum ?? null,
    };
    await changePolicy(deps, db, { actor: args.actor, id, policy });
    const seconds = schedule ? schedule.ms / 1_000 : null;
    return done({ id, asset: row.asset, seconds, amount: policy.accumulation_amount, minimum: policy.minimum });
  });
}

function findAsset({ networks }: Deps, wanted: string) {
  const entries = (networks?.chains ?? []).flatMap(({ assets }): Network["assets"][number][] => [...assets]);
  return entries.find(({ asset }) => asset === wanted);
}

function defaultAmount(deps: Deps, wanted: string): bigint | undefined {
  const known = findAsset(deps, wanted);
  return known && DEFAULT_UNITS * 10n ** BigInt(known.decimals);
}

/**
 * Enables or disables direct payment of a destination. With it, buyers pay the merchant's account directly: we never
 * hold the money, and a confirmed payment is settled. Applies to options created from now on. Refuses with
 * `merchant_not_found`, and with `params_validation` for an asset without EIP-3009 authorizations or that no configured
 * network has.
 */
export async function setDirectPayment(
  deps: Deps,
  args: Owner & { actor: AuditActor; merchantId: string; id: string; direct: boolean },
): Promise<Result<{ id: string; asset: string; direct: boolean }>> {
  const { merchantId, id, direct } = args;
  return withMerchantLock(deps, args, async (db) => {
    const row = await findDestination(db, { merchantId, id });
    if (!row) return noSuchDestination();
    if (direct && findAsset(deps, row.asset)?.kind !== "eip3009")
      return refuse("params_validation", `${row.asset} is not an EIP-3009 asset of the networks file`);
    await changePolicy(deps, db, { actor: args.actor, id, policy: { direct } });
    return done({ id, asset: row.asset, direct });
  });
}

/**
 * Enables or disables payments in other assets of the same currency. They are credited in the destination's asset and
 * paid out of the treasury's inventory of it. A merchant can enable this for one destination per currency. Applies to
 * options created from now on. Refuses with `merchant_not_found`, and with `params_validation` for an asset that no
 * configured network has or when another destination already accepts other assets of the currency.
 */
export async function setAcceptsOtherAssets(
  deps: Deps,
  args: Owner & { actor: AuditActor; merchantId: string; id: string; accept: boolean },
): Promise<Result<{ id: string; asset: string; acceptsOtherAssets: boolean }>> {
  const { merchantId, id, accept } = args;
  return withMerchantLock(deps, args, async (db) => {
    const rows = await listAcceptedAssets(db, merchantId);
    const row = rows.find((one) => one.id === id);
    if (!row) return noSuchDestination();
    const peg = findAsset(deps, row.asset)?.peg;
    if (accept && peg === undefined) return refuse("params_validation", `${row.asset} is not in the networks file`);
    const rival = rows.find(
      (one) => one.accepts_other_assets && one.id !== id && findAsset(deps, one.asset)?.peg === peg,
    );
    if (accept && rival)
      return refuse("params_validation", `the destination for ${rival.asset} already accepts other assets of ${peg}`);
    await changePolicy(deps, db, { actor: args.actor, id, policy: { accepts_other_assets: accept } });
    return done({ id, asset: row.asset, acceptsOtherAssets: accept });
  });
}

/**
 * Suspends or resumes all payouts to a merchant. Its balances do not change. Refuses with `merchant_not_found`, and with
 * `invalid_state` what is already so: two operators who hold the same merchant would otherwise end each other's hold.
 */
export async function holdPayouts(
  deps: Pick<Deps, "now"> & { db: Db },
  args: Owner & { actor: AuditActor; merchantId: string; hold: boolean },
): Promise<Result<{ merchantId: string; heldSince: Date | null }>> {
  return withMerchantLock(deps, args, async (db) => {
    const before = (await findPayoutHolds(db, [args.merchantId])).get(args.merchantId);
    if (args.hold && before)
      return refuse(
        "invalid_state",
        `the payouts have been held since ${before.toISOString()}; the audit log shows by whom`,
      );
    if (!args.hold && !before) return refuse("invalid_state", "the payouts are not held");
    const at = deps.now();
    const heldSince = args.hold ? at : null;
    await recordPayoutHold(db, { merchantId: args.merchantId, since: heldSince });
    const action = args.hold ? "merchant.payouts_held" : "merchant.payouts_released";
    await insertAuditEntries(db, [
      {
        actor: args.actor,
        action,
        subject: args.merchantId,
        before: before ? { heldSince: before.toISOString() } : null,
        after: heldSince ? { heldSince: heldSince.toISOString() } : null,
        at,
      },
    ]);
    return done({ merchantId: args.merchantId, heldSince });
  });
}

type PayoutPolicy = Awaited<ReturnType<typeof findPayoutPolicy>>;

/** Changes how a destination is paid, and records it. */
async function changePolicy(
  deps: Pick<Deps, "now">,
  db: Db,
  { actor, id, policy }: { actor: AuditActor; id: string; policy: Partial<PayoutPolicy> },
): Promise<void> {
  const at = deps.now();
  const before = await findPayoutPolicy(db, id);
  await updateDestination(db, { id, ...policy, updated_at: at });
  await insertAuditEntries(db, [
    {
      actor,
      action: "destination.policy_changed",
      subject: id,
      before: toAudited(before),
      after: toAudited({ ...before, ...policy }),
      at,
    },
  ]);
}

function toAudited(policy: PayoutPolicy) {
  const { accumulation_ms: accumulationMs, accumulation_amount: amount, minimum } = policy;
  const { direct, accepts_other_assets: acceptsOtherAssets } = policy;
  const [accumulationAmount, least] = [amount?.toString() ?? null, minimum?.toString() ?? null];
  return { accumulationMs, accumulationAmount, minimum: least, direct, acceptsOtherAssets };
}
