import { isDeepStrictEqual } from "node:util";
import { canonicalAddress, canonicalAsset, nativeAsset } from "../../chains/canonical-ids.ts";
import { findChainDriver } from "../../chains/find-chain-driver.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import { hasOpenException } from "../../db/queries/exceptions.ts";
import { type Balance, type BalanceFilter, listBalances } from "../../db/queries/ledger-balances.ts";
import { type Group, insertGroups, keepNewGroups, listBookedEntries } from "../../db/queries/ledger-groups.ts";
import { wakeShortPayouts } from "../../db/queries/payout-queue.ts";
import type { Db } from "../../db/tables.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { validateAsset } from "../merchants/validate-destinations.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { chainOf } from "../payouts/sign-payout.ts";
import { accounts } from "./ledger-accounts.ts";

type Deps = Pick<PaymentDeps, "now"> & { db: Db };

/** A manual booking, minor units. `reference` is its unique key, for example a ticket number. */
export type Correction = {
  reference: string;
  debit: string;
  credit: string;
  asset: string;
  amount: bigint;
  note: string;
};

/**
 * Accounts open to manual bookings. Merchant balances and money in transit are excluded: they follow from other rows.
 */
const byHand: readonly string[] = [
  accounts.treasury,
  accounts.cold,
  accounts.exceptions,
  accounts.capital,
  accounts.gasSpent,
  accounts.losses,
];

const isLane = (account: string): boolean => /^lane:./.test(account);

/** Returns the error of an asset that no account of ours can hold, or undefined. */
function validateHeldAsset(asset: string): string | undefined {
  const driver = findChainDriver(asset);
  if (driver && canonicalAsset(asset) === nativeAsset(chainOf(asset))) return undefined;
  return validateAsset(asset) ?? (driver ? undefined : "asset: its chain is of no known family");
}

/** Returns a correction as the ledger spells it: explorers show EVM addresses in mixed case. */
function toBooked({ debit, credit, asset, ...rest }: Correction): Correction {
  const spell = (account: string) =>
    isLane(account) ? accounts.lane(canonicalAddress(asset, account.slice("lane:".length))) : account;
  return { ...rest, debit: spell(debit), credit: spell(credit), asset: canonicalAsset(asset) };
}

/**
 * Books a correction as a new group, because ledger entries never change. Repeating the same correction under the same
 * reference books it once and returns `repeated`. Refuses with `params_validation` a text that is no asset, and with
 * `invalid_state` an account that is closed to manual bookings, a lane with an open exception (booking that one accounts for
 * its money), and a reference that another correction has.
 */
export async function correctLedger(
  deps: Deps,
  { actor, ...correction }: Correction & { actor: AuditActor },
): Promise<Result<{ reference: string; repeated: boolean }>> {
  const error = validateHeldAsset(correction.asset);
  if (error) return refuse("params_validation", error);
  const { reference, debit, credit, asset, amount, note } = toBooked(correction);
  for (const account of [debit, credit])
    if (!byHand.includes(account) && !isLane(account))
      return refuse("invalid_state", `${account}: expected ${byHand.join(", ")} or lane: and an address`);
  const entries = [
    { account: debit, asset, amount },
    { account: credit, asset, amount: -amount },
  ];
  const group: Group = { kind: "correction", subject: reference, entries, note };
  const booked = await deps.db.transaction().execute(async (db) => {
    const fresh = await keepNewGroups(db, [group]);
    if (fresh.length === 0)
      return (await isBooked(db, group))
        ? done({ reference, repeated: true })
        : refuse("invalid_state", `--reference: another correction is booked as ${reference}`);
    for (const account of [debit, credit])
      if (isLane(account) && (await hasOpenException(db, account)))
        return refuse("invalid_state", `${account} has an open exception: book that one instead (exceptions list)`);
    const at = deps.now();
    await insertGroups(db, fresh, at);
    const after = { debit, credit, asset, amount: amount.toString(), note };
    await insertAuditEntries(db, [{ actor, action: "ledger.corrected", subject: reference, before: null, after, at }]);
    return done({ reference, repeated: false });
  });
  // The correction may cover payouts that waited for inventory.
  if (booked.ok) await wakeShortPayouts(deps.db, chainOf(asset));
  return booked;
}

/** Returns true when exactly these entries and this note are booked under the group's unique key. */
async function isBooked(db: Db, { kind, subject, entries, note }: Group): Promise<boolean> {
  const booked = await listBookedEntries(db, { kind, subject });
  const same = booked.map(({ account, asset, amount }) => ({ account, asset, amount }));
  return isDeepStrictEqual(same, [...entries]) && booked.every((row) => row.note === note);
}

/** Returns account balances at the end of a UTC day (YYYY-MM-DD), or now. */
export function readBalances({ db }: Pick<Deps, "db">, filter: BalanceFilter): Promise<Balance[]> {
  return listBalances(db, { ...filter, asset: filter.asset === undefined ? undefined : canonicalAsset(filter.asset) });
}
