import { isAddress } from "viem";
import { canonicalAsset, parseAccountId, parseAssetId } from "../chains/caip.ts";
import { isAddress as isSolanaAddress } from "../chains/solana/keys.ts";
import { inTransaction } from "../db/in-transaction.ts";
import type { Db } from "../db/tables.ts";
import type { PaymentDeps } from "./deps.ts";
import { done, type Result, refuse } from "./errors.ts";
import { newId } from "./ids.ts";
import { isOurs, lockMerchant, type Owner } from "./merchants.ts";

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
 * Registers where a merchant is paid, all of them or none. An asset that no network of ours has is taken too: it is
 * offered to buyers once a network has it. Refuses with `merchant_not_found`, `params_validation` naming the entry that
 * does not fit, `settlement_asset_conflict` for an asset that the merchant has already.
 */
export function addDestinations(
  deps: Deps,
  args: Owner & { merchantId: string; settlements: readonly Destination[] },
): Promise<Result<DestinationView[]>> {
  return changeAlone(deps, args, async (db) => {
    for (const [index, entry] of args.settlements.entries()) {
      const fault = findAssetFault(entry.asset) ?? findDestinationFault(deps, entry);
      if (fault) return refuse("params_validation", `settlements.${index}.${fault}`);
    }
    const rows = args.settlements.map((entry) => ({
      id: newId("crypto"),
      asset: canonicalAsset(entry.asset),
      destination: entry.destination,
    }));
    const listed = await listDestinations({ db }, args);
    if (!listed.ok) return listed;
    const taken = new Set(listed.value.map(({ asset }) => asset));
    for (const [index, { asset }] of rows.entries()) {
      if (taken.has(asset))
        return refuse("settlement_asset_conflict", `settlements.${index}.asset: has a destination already`);
      taken.add(asset);
    }
    const at = deps.now();
    await db
      .insertInto("settlement_destination")
      .values(rows.map((row) => ({ ...row, merchant_id: args.merchantId, created_at: at, updated_at: at })))
      .execute();
    return done(rows);
  });
}

/** Changes where an asset is paid out to; counts for settlements made afterwards. The asset stays as it is. */
export async function changeDestination(
  deps: Deps & Pick<PaymentDeps, "log">,
  args: Owner & { merchantId: string; id: string; destination: string },
): Promise<Result<DestinationView>> {
  const { merchantId, id, destination } = args;
  const changed = await changeAlone(deps, args, async (db) => {
    const before = await db
      .selectFrom("settlement_destination")
      .select(["id", "asset", "destination"])
      .where("id", "=", id)
      .where("merchant_id", "=", merchantId)
      .executeTakeFirst();
    if (!before) return noSuchDestination();
    const fault = findDestinationFault(deps, { asset: before.asset, destination });
    if (fault) return refuse("params_validation", fault);
    await db
      .updateTable("settlement_destination")
      .set({ destination, updated_at: deps.now() })
      .where("id", "=", id)
      .execute();
    return done(before);
  });
  if (!changed.ok) return changed;
  const { asset, destination: from } = changed.value;
  deps.log.info({ merchant: merchantId, asset, from, to: destination }, "a destination was changed");
  return done({ id, asset, destination });
}

/**
 * Pays out what several payments owe in one transfer: so long after the first of them (milliseconds), or when they come
 * to an amount (minor units), whichever is first; without `gather` each at once. What gathers already is paid when due.
 */
export async function gatherPayouts(
  deps: Deps,
  args: Owner & { merchantId: string; id: string; gather: { ms: number; amount: bigint | null } | undefined },
): Promise<Result<{ id: string; asset: string; seconds: number | null; amount: bigint | null }>> {
  const { merchantId, id, gather } = args;
  return changeAlone(deps, args, async (db) => {
    const row = await db
      .updateTable("settlement_destination")
      .set({ gather_ms: gather?.ms ?? null, gather_amount: gather?.amount ?? null, updated_at: deps.now() })
      .where("id", "=", id)
      .where("merchant_id", "=", merchantId)
      .returning("asset")
      .executeTakeFirst();
    if (!row) return noSuchDestination();
    return done({ id, asset: row.asset, seconds: gather ? gather.ms / 1_000 : null, amount: gather?.amount ?? null });
  });
}

/** Takes a destination away: the asset is no longer offered to buyers, and what is owed in it waits for a new one. */
export async function deleteDestination(
  deps: Deps & Pick<PaymentDeps, "log">,
  args: Owner & { merchantId: string; id: string },
): Promise<Result<{ id: string }>> {
  const deleted = await changeAlone(deps, args, async (db) => {
    const row = await db
      .deleteFrom("settlement_destination")
      .where("id", "=", args.id)
      .where("merchant_id", "=", args.merchantId)
      .returning(["id", "asset", "destination"])
      .executeTakeFirst();
    return row ? done(row) : noSuchDestination();
  });
  if (!deleted.ok) return deleted;
  const { id, asset, destination: from } = deleted.value;
  deps.log.info({ merchant: args.merchantId, asset, from }, "a destination was taken away");
  return done({ id });
}

/**
 * One change at a time of where a merchant is paid: two that register the same assets in another order would each wait
 * for the other. Work refuses before it writes. `merchant_not_found`.
 */
function changeAlone<T>(
  deps: Deps,
  args: Owner & { merchantId: string },
  work: (db: Db) => Promise<Result<T>>,
): Promise<Result<T>> {
  return inTransaction(deps.db, async (db) =>
    (await lockMerchant(db, args)) ? work(db) : refuse("merchant_not_found", "no such merchant"),
  );
}

/** The list of codes has none for a settlement entry: the path names something that is not this merchant's. */
const noSuchDestination = () => refuse("merchant_not_found", "the merchant has no such settlement");

/** What is wrong with an asset, beginning with the member's name; undefined when it may be one. */
function findAssetFault(text: string): string | undefined {
  const asset = parseAssetId(text);
  if (!asset) return "asset: expected a CAIP-19 asset such as eip155:8453/erc20:0x…";
  if (asset.chain.startsWith("solana:")) {
    if (asset.namespace !== "token") return "asset: expected a token, such as solana:5eykt4U…/token:EPjFWdd5…";
    return isSolanaAddress(asset.token) ? undefined : "asset: expected a mint's address in base58";
  }
  if (!asset.chain.startsWith("eip155:")) return undefined;
  if (!/^eip155:[1-9]\d*$/.test(asset.chain)) return "asset: expected a chain such as eip155:8453";
  if (asset.namespace !== "erc20") return "asset: expected a token, such as eip155:8453/erc20:0x…";
  const fault = findAddressFault(asset.token);
  return fault && `asset: ${fault}`;
}

/** What is wrong with a destination of a good asset, beginning with the member's name; undefined when it is usable. */
function findDestinationFault(deps: Pick<Deps, "networks">, entry: Destination): string | undefined {
  const asset = parseAssetId(entry.asset);
  const account = parseAccountId(entry.destination);
  if (!account) return "destination: expected a CAIP-10 account such as eip155:8453:0x…";
  if (account.chain !== asset?.chain) return "destination: is on another chain than the asset";
  const isSolana = asset.chain.startsWith("solana:");
  if (!isSolana && !asset.chain.startsWith("eip155:")) return undefined;
  const notSolana = isSolanaAddress(account.address) ? undefined : "expected an address of 32 bytes in base58";
  const fault = isSolana ? notSolana : findAddressFault(account.address);
  if (fault) return `destination: ${fault}`;
  const address = isSolana ? account.address : account.address.toLowerCase();
  if (address === (isSolana ? asset.token : asset.token.toLowerCase()))
    return "destination: is the token's own contract";
  if (listOwn(deps, asset.chain).includes(address)) return "destination: is an account of the service itself";
  return undefined;
}

/** What is wrong with an address of EVM. EIP-55: letters of both cases carry a checksum; a wrong one is a slip. */
function findAddressFault(address: string): string | undefined {
  if (!/^0x[0-9a-fA-F]{40}$/.test(address)) return "expected an address of 20 bytes in hex";
  if (/^0x0{40}$/.test(address)) return "is the zero address";
  const hasChecksum = /[a-f]/.test(address.slice(2)) && /[A-F]/.test(address.slice(2));
  return hasChecksum && !isAddress(address) ? "the address's checksum is wrong (EIP-55)" : undefined;
}

/** Where a payout would be lost or come back to us: our accounts, and the batching contract, out of which anybody takes. */
function listOwn({ networks }: Pick<Deps, "networks">, chain: string): string[] {
  const network = networks?.chains.find((one) => one.chain === chain);
  if (!network) return [];
  const own = [network.treasury, ...network.lanes].map(({ address }) => address);
  return "multicall" in network ? [...own, network.multicall].map((address) => address.toLowerCase()) : own;
}
