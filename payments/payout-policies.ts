import type { Db, Tables } from "../db/tables.ts";
import type { EvmAsset, SolanaAsset } from "../ops/networks.ts";
import type { PaymentDeps } from "./deps.ts";
import { changeAlone, findDestination, noSuchDestination } from "./destinations.ts";
import { done, type Result, refuse } from "./errors.ts";
import type { Owner } from "./merchants.ts";

type Deps = Pick<PaymentDeps, "db" | "now"> & Partial<Pick<PaymentDeps, "networks">>;

/** So much of an asset is paid out at once, whole units, where a policy that gathers says nothing else. */
const USUAL_UNITS = 1_000n;

/**
 * How payouts gather: so long after the first payment (milliseconds), or when they come to an amount (minor units; 1,000
 * units of the asset when unset), whichever is first, and never before they come to a minimum.
 */
export type Gather = { ms: number; amount?: bigint | undefined; minimum?: bigint | undefined };
export type PolicyView = {
  id: string;
  asset: string;
  seconds: number | null;
  amount: bigint | null;
  minimum: bigint | null;
};

/**
 * Pays out what several payments owe in one transfer; without `gather` each at once. What gathers already is paid when
 * due. Refuses with `merchant_not_found`, and with `params_validation` when the amount is unset and no network of ours
 * knows the asset's decimals, or the minimum is above it.
 */
export async function gatherPayouts(
  deps: Deps,
  args: Owner & { merchantId: string; id: string; gather: Gather | undefined },
): Promise<Result<PolicyView>> {
  const { merchantId, id, gather } = args;
  return changeAlone(deps, args, async (db) => {
    const row = await findDestination(db, { merchantId, id });
    if (!row) return noSuchDestination();
    const amount = gather && (gather.amount ?? findUsual(deps, row.asset));
    if (gather && amount === undefined)
      return refuse("params_validation", `amount: ${row.asset} is in no networks file, so it has to be given`);
    if (gather?.minimum !== undefined && amount !== undefined && gather.minimum > amount)
      return refuse("params_validation", "minimum: is above the amount that is paid out at once");
    const policy = { gather_ms: gather?.ms ?? null, gather_amount: amount ?? null, minimum: gather?.minimum ?? null };
    await db
      .updateTable("settlement_destination")
      .set({ ...policy, updated_at: deps.now() })
      .where("id", "=", id)
      .execute();
    const seconds = gather ? gather.ms / 1_000 : null;
    return done({ id, asset: row.asset, seconds, amount: policy.gather_amount, minimum: policy.minimum });
  });
}

function findAsset({ networks }: Deps, wanted: string) {
  const entries = (networks?.chains ?? []).flatMap(({ assets }): (EvmAsset | SolanaAsset)[] => [...assets]);
  return entries.find(({ asset }) => asset === wanted);
}

function findUsual(deps: Deps, wanted: string): bigint | undefined {
  const known = findAsset(deps, wanted);
  return known && USUAL_UNITS * 10n ** BigInt(known.decimals);
}

/**
 * Lets buyers pay a destination themselves, or not: then confirmed is paid out, and nothing of it is ever held here. For
 * options that are made from now on. Refuses with `merchant_not_found`, and with `params_validation` for an asset that
 * does not take signed authorizations (EIP-3009), or that no network of ours knows.
 */
export async function payDirectly(
  deps: Deps,
  args: Owner & { merchantId: string; id: string; direct: boolean },
): Promise<Result<{ id: string; asset: string; direct: boolean }>> {
  const { merchantId, id, direct } = args;
  return changeAlone(deps, args, async (db) => {
    const row = await findDestination(db, { merchantId, id });
    if (!row) return noSuchDestination();
    if (direct && findAsset(deps, row.asset)?.kind !== "eip3009")
      return refuse("params_validation", `${row.asset} is no asset of the networks file with signed authorizations`);
    await db
      .updateTable("settlement_destination")
      .set({ direct, updated_at: deps.now() })
      .where("id", "=", id)
      .execute();
    return done({ id, asset: row.asset, direct });
  });
}

/**
 * Takes payments in other assets of the same currency for a destination too, or not: they are owed in its asset, and
 * paid out of what the treasury has of it. One destination of a merchant does so for each currency. For options that are
 * made from now on. Refuses with `merchant_not_found`, and with `params_validation` for an asset that no network knows.
 */
export async function takeOthers(
  deps: Deps,
  args: Owner & { merchantId: string; id: string; take: boolean },
): Promise<Result<{ id: string; asset: string; takesOthers: boolean }>> {
  const { merchantId, id, take } = args;
  return changeAlone(deps, args, async (db) => {
    const rows = await db
      .selectFrom("settlement_destination")
      .select(["id", "asset", "takes_others"])
      .where("merchant_id", "=", merchantId)
      .execute();
    const row = rows.find((one) => one.id === id);
    if (!row) return noSuchDestination();
    const peg = findAsset(deps, row.asset)?.peg;
    if (take && peg === undefined) return refuse("params_validation", `${row.asset} is in no networks file`);
    const rival = rows.find((one) => one.takes_others && one.id !== id && findAsset(deps, one.asset)?.peg === peg);
    if (take && rival) return refuse("params_validation", `${rival.asset} takes the others of ${peg} already`);
    await db
      .updateTable("settlement_destination")
      .set({ takes_others: take, updated_at: deps.now() })
      .where("id", "=", id)
      .execute();
    return done({ id, asset: row.asset, takesOthers: take });
  });
}

/** Lets nothing be paid out to a merchant, or lets it again; what is owed stays owed. `merchant_not_found`. */
export async function holdPayouts(
  deps: Pick<Deps, "db" | "now">,
  args: Owner & { merchantId: string; hold: boolean },
): Promise<Result<{ merchantId: string; heldSince: Date | null }>> {
  return changeAlone(deps, args, async (db) => {
    const heldSince = args.hold ? deps.now() : null;
    await db.updateTable("merchant").set({ payouts_held_at: heldSince }).where("id", "=", args.merchantId).execute();
    return done({ merchantId: args.merchantId, heldSince });
  });
}

export type DestinationChange = Pick<Tables["destination_change"], "asset" | "before" | "after" | "at">;

/** Where a merchant was paid before, the oldest first, also by destinations that are gone. */
export async function listDestinationChanges({ db }: { db: Db }, merchantId: string): Promise<DestinationChange[]> {
  return db
    .selectFrom("destination_change")
    .select(["asset", "before", "after", "at"])
    .where("merchant_id", "=", merchantId)
    .orderBy("id")
    .execute();
}
