import { parseAccountId, parseAssetId } from "../chains/caip.ts";
import type { Mode } from "../db/tables.ts";
import type { PaymentDeps } from "./deps.ts";
import { done, type Result, refuse } from "./errors.ts";
import { newId } from "./ids.ts";

/** SQLSTATE of a unique index that refused a row. */
const UNIQUE_VIOLATION = "23505";

type Deps = Pick<PaymentDeps, "db" | "now">;

/** Makes a merchant, `active` from the start (specification, 2.7). */
export async function createMerchant(
  deps: Deps,
  args: { accountId: string; mode: Mode; name: string; email: string },
): Promise<{ id: string; createdAt: Date }> {
  const id = newId("mrch");
  const createdAt = deps.now();
  await deps.db
    .insertInto("merchant")
    .values({
      id,
      account_id: args.accountId,
      mode: args.mode,
      name: args.name,
      email: args.email,
      logo_id: null,
      created_at: createdAt,
      deleted_at: null,
    })
    .execute();
  return { id, createdAt };
}

/** One asset and the account it is paid out to (specification, 2.8): CAIP-19 and CAIP-10 on one chain. */
export type Destination = { asset: string; destination: string };

/**
 * Registers where a merchant is paid. All or none: `params_validation` names the entry that does not fit,
 * `settlement_asset_conflict` an asset that the merchant has already.
 */
export async function addDestinations(
  deps: Deps,
  args: { merchantId: string; settlements: readonly Destination[] },
): Promise<Result<(Destination & { id: string })[]>> {
  for (const [index, entry] of args.settlements.entries()) {
    const fault = findDestinationFault(entry);
    if (fault) return refuse("params_validation", `settlements.${index}.${fault}`);
  }
  const at = deps.now();
  const rows = args.settlements.map((entry) => ({
    id: newId("crypto"),
    asset: entry.asset.toLowerCase(),
    destination: entry.destination,
  }));
  if (new Set(rows.map((row) => row.asset)).size !== rows.length)
    return refuse("settlement_asset_conflict", "settlements: one asset stands twice");
  try {
    await deps.db
      .insertInto("settlement_destination")
      .values(rows.map((row) => ({ ...row, merchant_id: args.merchantId, created_at: at, updated_at: at })))
      .execute();
  } catch (error) {
    if ((error as { code?: string }).code !== UNIQUE_VIOLATION) throw error;
    return refuse(
      "settlement_asset_conflict",
      "settlements: the merchant has a destination for one of the assets already",
    );
  }
  return done(rows);
}

/** What is wrong with a destination, beginning with the member's name; undefined when it is usable. */
function findDestinationFault(entry: Destination): string | undefined {
  const asset = parseAssetId(entry.asset);
  if (!asset) return "asset: expected a CAIP-19 asset such as eip155:8453/erc20:0x…";
  const account = parseAccountId(entry.destination);
  if (!account) return "destination: expected a CAIP-10 account such as eip155:8453:0x…";
  if (account.chain !== asset.chain) return "destination: is on another chain than the asset";
  if (!asset.chain.startsWith("eip155:")) return undefined;
  if (!/^0x[0-9a-fA-F]{40}$/.test(account.address)) return "destination: expected an address of 20 bytes in hex";
  if (/^0x0{40}$/.test(account.address)) return "destination: is the zero address";
  if (account.address.toLowerCase() === asset.token.toLowerCase()) return "destination: is the token's own contract";
  return undefined;
}
