import { canonicalAddress } from "../../chains/canonical-ids.ts";
import { deriveNonce, refundKey } from "../../chains/natural-key.ts";
import { listUnreadChains } from "../../db/epoch.ts";
import { findPaymentRow } from "../../db/queries/payments.ts";
import { listUnclaimedPayouts, type UnclaimedPayout } from "../../db/queries/payout-nonces.ts";
import { listRefunds, type RefundRow } from "../../db/queries/refunds.ts";
import { type KeptOf, listOpenNumbers, type SettlementRow } from "../../db/queries/settlements.ts";
import type { Db } from "../../db/tables.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { type DrawnOf, findForgottenDraws, LATER_NUMBERS, listTreasuries } from "./find-forgotten-draws.ts";
import { type BalanceKey, groupByBalance } from "./group-by-balance.ts";
import { computeLeft } from "./refund-payment.ts";
import { type CatchUpDeps, chainOf, settlementNonce } from "./sign-payout.ts";
import type { Reserved } from "./split-by-cover.ts";

/**
 * Returns how much of a merchant's settlements in an asset the chain shows as paid before a restore. Nothing may deduct that: the payout
 * is yet to be adopted, and its money is not there any more.
 */
export async function readKeptOf(
  deps: Pick<PaymentDeps, "networks">,
  db: Db,
  { merchantId, asset }: { merchantId: string; asset: string },
): Promise<KeptOf> {
  const chain = chainOf(asset);
  const network = deps.networks.chains.find((one) => one.chain === chain);
  if (!network) return () => 0n;
  const payer = canonicalAddress(chain, network.treasury.address);
  const made = (await listUnclaimedPayouts(db, [{ chain, payer }])).get(chain);
  return ({ number, amount }) => {
    if (!made) return 0n;
    const paid = made.get(settlementNonce(deps, { merchant_id: merchantId, asset, number }))?.amount ?? 0n;
    return paid < amount ? paid : amount;
  };
}

type Settlement = Pick<SettlementRow, "id" | "merchant_id" | "asset">;

/** Forgotten payouts of a merchant and asset that begin in one run. */
const MOST = 100;

/** What the chain shows of payouts that the database lacks, by the id of the settlement or refund that has the nonce. */
export type ForgottenPayouts = ReadonlyMap<string, UnclaimedPayout>;

/**
 * Returns true if the chain shows that a payout was made, beyond any reorg. It takes no inventory: the ledger has booked what left, and
 * nothing is sent, because the payout is adopted when it has begun.
 */
export function wasPaid(forgotten: ForgottenPayouts, { id }: { id: string }): boolean {
  return forgotten.get(id)?.booked === true;
}

/**
 * Returns true if every chain has been read again since a restore, or none of these payouts is `mixed`: drawn on a balance that has, or may
 * have, money of other assets. A refund of such money that the database has lost may be on any chain.
 */
export async function isRereadFor(
  { db, chains }: Pick<PaymentDeps, "db" | "chains">,
  payouts: readonly { mixed: boolean }[],
): Promise<boolean> {
  if (!payouts.some(({ mixed }) => mixed)) return true;
  return !(await listUnreadChains(db)).some((chain) => chains.has(chain));
}

/**
 * Returns which of these settlements must not begin yet, because the chain shows a payout of the same merchant and asset that a restored
 * database does not know. That payout may have paid these settlements, or have drawn on the same balance. They continue once it is
 * adopted, which needs its own settlement to begin, or the refund to be requested again. So this also returns the unpaid settlements that
 * have the nonces of such payouts, whether or not they are among the given ones: `first` has at most 100 of a merchant and asset,
 * `forgotten` all.
 */
export async function findForgottenPayouts(
  deps: Pick<PaymentDeps, "db" | "chains" | "networks" | "log"> & CatchUpDeps,
  settlements: readonly Settlement[],
): Promise<{ waiting: ReadonlySet<string>; first: readonly string[]; forgotten: ForgottenPayouts }> {
  const waiting = new Set<string>();
  const first: string[] = [];
  const forgotten = new Map<string, UnclaimedPayout>();
  if (settlements.length === 0) return { waiting, first, forgotten };
  const unclaimed = await listUnclaimedPayouts(deps.db, listTreasuries(deps));
  if (unclaimed.size === 0) return { waiting, first, forgotten };
  const drawnOf = await findForgottenDraws(deps, merchantsOf(settlements));
  const groups = groupByBalance(settlements, ({ merchant_id: merchantId, asset }) => ({ merchantId, asset }));
  for (const { merchantId, asset, items } of groups) {
    const made = unclaimed.get(chainOf(asset));
    const open = made ? await listOpenNumbers(deps.db, { merchantId, asset }) : [];
    const matched = open.flatMap(({ id, number, state }) => {
      const payout = made?.get(settlementNonce(deps, { merchant_id: merchantId, asset, number }));
      return payout ? { id, state, payout } : [];
    });
    const ids = new Set(matched.map(({ id }) => id));
    const mustWait = ids.size > 0 || drawnOf({ merchantId, asset }) > 0n;
    if (mustWait) for (const { id } of items) if (!ids.has(id)) waiting.add(id);
    const unbegun = matched.filter(({ state }) => state !== "paying");
    for (const { id, payout } of unbegun) forgotten.set(id, payout);
    first.push(...unbegun.slice(0, MOST).map(({ id }) => id));
  }
  return { waiting, first, forgotten };
}

const merchantsOf = (rows: readonly { merchant_id: string | null }[]): string[] => [
  ...new Set(rows.flatMap(({ merchant_id }) => merchant_id ?? [])),
];

/** What is known of refunds after a restore: see `findForgottenRefunds`. */
export type ForgottenRefunds = {
  waiting: ReadonlySet<string>;
  forgotten: ForgottenPayouts;
  /** What a refund must leave of its balance, by its id. */
  reserved: ReadonlyMap<string, Reserved>;
};

/**
 * Returns those of these refunds that must not begin, because the chain shows a later refund of the same payment that a
 * restored database does not know. The lost database may have withdrawn them and sent the later refund in their place.
 * They continue when the later refund is requested again and adopted, which may need their withdrawal. Refunds wait as well if others
 * of their payment have sent more than the database says, and too little is left: the adoption withdraws what exceeds it. A refund whose
 * own nonce the chain shows too was sent: it is among the `forgotten` ones, begins, and is adopted. The others must leave what lost refunds
 * of other payments have drawn on the same balance (`reserved`).
 */
export async function findForgottenRefunds(
  deps: Pick<PaymentDeps, "db" | "chains" | "networks" | "log">,
  refunds: readonly RefundRow[],
): Promise<ForgottenRefunds> {
  const waiting = new Set<string>();
  const forgotten = new Map<string, UnclaimedPayout>();
  const nothing = { waiting, forgotten, reserved: new Map<string, Reserved>() };
  if (refunds.length === 0) return nothing;
  const unclaimed = await listUnclaimedPayouts(deps.db, listTreasuries(deps));
  if (unclaimed.size === 0) return nothing;
  const drawing: { id: string; balance: BalanceKey }[] = [];
  for (const refund of refunds) {
    const { id, merchant_id: merchantId, payment_id: paymentId, number, asset, owed_asset } = refund;
    if (merchantId === null || paymentId === null) continue;
    const made = unclaimed.get(chainOf(asset));
    const findMade = (one: number) =>
      made?.get(deriveNonce(deps.networks.deployment, refundKey({ merchantId, paymentId, number: one })));
    const own = findMade(number);
    if (own) {
      forgotten.set(id, own);
      continue;
    }
    drawing.push({ id, balance: { merchantId, asset: owed_asset ?? asset } });
    if (!made) continue;
    const sent = (await listRefunds(deps.db, paymentId)).map((one) => {
      const amount = findMade(one.number)?.amount ?? 0n;
      return amount > one.amount ? { ...one, amount } : one;
    });
    if (computeLeft((await findPaymentRow(deps.db, paymentId))?.paid_amount ?? null, sent) < 0n) waiting.add(id);
    for (let later = number + 1; later <= number + LATER_NUMBERS; later += 1) if (findMade(later)) waiting.add(id);
  }
  const drawnOf = await findForgottenDraws(deps, merchantsOf(refunds));
  return { waiting, forgotten, reserved: await findReserved(deps, drawing, drawnOf) };
}

/** Returns what refunds must leave of their balances: what lost refunds have drawn on them, and what the chain shows as paid. */
async function findReserved(
  deps: Pick<PaymentDeps, "db" | "networks">,
  refunds: readonly { id: string; balance: BalanceKey }[],
  drawnOf: DrawnOf,
): Promise<ReadonlyMap<string, Reserved>> {
  const reserved = new Map<string, Reserved>();
  for (const { items, ...balance } of groupByBalance(refunds, (one) => one.balance)) {
    const drawn = drawnOf(balance);
    if (drawn === 0n) continue;
    const keptOf = await readKeptOf(deps, deps.db, balance);
    const unbegun = (await listOpenNumbers(deps.db, balance)).filter(({ state }) => state !== "paying");
    const kept = unbegun.reduce((sum, one) => sum + keptOf(one), 0n);
    for (const { id } of items) reserved.set(id, { drawn, kept });
  }
  return reserved;
}
