import { getAddress, isAddress } from "viem";
import { parseAccountId, parseAssetId } from "../chains/caip.ts";
import type { PaymentDeps } from "./deps.ts";
import { done, type Result, refuse } from "./errors.ts";
import { newId } from "./ids.ts";
import { isOurs, type Owner } from "./merchants.ts";

/** A command line without a networks file gives none: then our own accounts are not known. */
type Deps = Pick<PaymentDeps, "db" | "now"> & Partial<Pick<PaymentDeps, "networks">>;

/** One asset and the account it is paid out to (specification, 2.8): CAIP-19 and CAIP-10 on one chain. */
export type Destination = { asset: string; destination: string };
export type DestinationView = Destination & { id: string };

/** Where a merchant is paid, in the order of registration; `merchant_not_found`. */
export async function listDestinations(
  deps: Pick<Deps, "db">,
  args: Owner & { merchantId: string },
): Promise<Result<DestinationView[]>> {
  if (!(await isOurs(deps.db, args))) return refuse("merchant_not_found", "no such merchant");
  const rows = await deps.db
    .selectFrom("settlement_destination")
    .select(["id", "asset", "destination"])
    .where("merchant_id", "=", args.merchantId)
    .orderBy("created_at")
    .orderBy("id")
    .execute();
  return done(rows);
}

/**
 * Registers where a merchant is paid. All or none, so it has to run in a transaction that is rolled back on a refusal:
 * `merchant_not_found`, `params_validation` naming the entry that does not fit, `settlement_asset_conflict` for an
 * asset that the merchant has already.
 */
export async function addDestinations(
  deps: Deps,
  args: Owner & { merchantId: string; settlements: readonly Destination[] },
): Promise<Result<DestinationView[]>> {
  if (!(await isOurs(deps.db, args))) return refuse("merchant_not_found", "no such merchant");
  for (const [index, entry] of args.settlements.entries()) {
    const fault = findDestinationFault(deps, entry);
    if (fault) return refuse("params_validation", `settlements.${index}.${fault}`);
  }
  const rows = args.settlements.map((entry) => ({
    id: newId("crypto"),
    asset: canonicalAsset(entry.asset),
    destination: entry.destination,
  }));
  if (new Set(rows.map((row) => row.asset)).size !== rows.length)
    return refuse("settlement_asset_conflict", "settlements: one asset stands twice");
  const there = await deps.db
    .selectFrom("settlement_destination")
    .select("asset")
    .where("merchant_id", "=", args.merchantId)
    .execute();
  const taken = rows.findIndex((row) => there.some(({ asset }) => asset === row.asset));
  if (taken >= 0) return refuseTaken(taken);
  const at = deps.now();
  const made = await deps.db
    .insertInto("settlement_destination")
    .values(rows.map((row) => ({ ...row, merchant_id: args.merchantId, created_at: at, updated_at: at })))
    .onConflict((conflict) => conflict.columns(["merchant_id", "asset"]).doNothing())
    .returning("id")
    .execute();
  if (made.length === rows.length) return done(rows);
  return refuseTaken(rows.findIndex((row) => !made.some(({ id }) => id === row.id)));
}

const refuseTaken = (index: number) =>
  refuse("settlement_asset_conflict", `settlements.${index}.asset: the merchant has a destination for it already`);

/** Changes where an asset is paid out to; counts for settlements made afterwards. The asset stays as it is. */
export async function changeDestination(
  deps: Deps & Pick<PaymentDeps, "log">,
  args: Owner & { merchantId: string; id: string; destination: string },
): Promise<Result<DestinationView>> {
  const listed = await listDestinations(deps, args);
  if (!listed.ok) return listed;
  const before = listed.value.find(({ id }) => id === args.id);
  if (!before) return noSuchDestination();
  const fault = findDestinationFault(deps, { asset: before.asset, destination: args.destination });
  if (fault) return refuse("params_validation", fault);
  const row = await deps.db
    .updateTable("settlement_destination")
    .set({ destination: args.destination, updated_at: deps.now() })
    .where("id", "=", args.id)
    .where("merchant_id", "=", args.merchantId)
    .returning(["id", "asset", "destination"])
    .executeTakeFirst();
  if (!row) return noSuchDestination();
  deps.log.info(
    { merchant: args.merchantId, asset: row.asset, from: before.destination, to: row.destination },
    "a destination was changed",
  );
  return done(row);
}

/** Takes a destination away: the asset is no longer offered to buyers, and what is owed in it waits for a new one. */
export async function deleteDestination(
  deps: Deps & Pick<PaymentDeps, "log">,
  args: Owner & { merchantId: string; id: string },
): Promise<Result<{ id: string }>> {
  if (!(await isOurs(deps.db, args))) return refuse("merchant_not_found", "no such merchant");
  const row = await deps.db
    .deleteFrom("settlement_destination")
    .where("id", "=", args.id)
    .where("merchant_id", "=", args.merchantId)
    .returning(["id", "asset", "destination"])
    .executeTakeFirst();
  if (!row) return noSuchDestination();
  deps.log.info({ merchant: args.merchantId, asset: row.asset, from: row.destination }, "a destination was taken away");
  return done({ id: row.id });
}

/** The list of codes has none for a settlement entry: the path names something that is not this merchant's. */
const noSuchDestination = () => refuse("merchant_not_found", "the merchant has no such settlement");

/** Addresses of EVM are compared without regard to case; those of other chains are what they are. */
function canonicalAsset(asset: string): string {
  return asset.startsWith("eip155:") ? asset.toLowerCase() : asset;
}

/** What is wrong with a destination, beginning with the member's name; undefined when it is usable. */
function findDestinationFault(deps: Pick<Deps, "networks">, entry: Destination): string | undefined {
  const asset = parseAssetId(entry.asset);
  if (!asset) return "asset: expected a CAIP-19 asset such as eip155:8453/erc20:0x…";
  const account = parseAccountId(entry.destination);
  if (!account) return "destination: expected a CAIP-10 account such as eip155:8453:0x…";
  if (account.chain !== asset.chain) return "destination: is on another chain than the asset";
  if (!asset.chain.startsWith("eip155:")) return undefined;
  const { address } = account;
  if (!/^0x[0-9a-fA-F]{40}$/.test(address)) return "destination: expected an address of 20 bytes in hex";
  // EIP-55: letters of one case carry no checksum; mixed ones do, and a wrong one is a slip of the pen.
  const hasChecksum = /[a-f]/.test(address.slice(2)) && /[A-F]/.test(address.slice(2));
  if (hasChecksum && !isAddress(address))
    return `destination: the address's checksum is wrong (EIP-55), is it ${getAddress(address.toLowerCase())}?`;
  if (/^0x0{40}$/.test(address)) return "destination: is the zero address";
  const ours = deps.networks?.chains.find(({ chain }) => chain === asset.chain);
  if (address.toLowerCase() === asset.token.toLowerCase()) return "destination: is the token's own contract";
  if (address.toLowerCase() === ours?.treasury.address.toLowerCase())
    return "destination: is the service's own account";
  return undefined;
}
