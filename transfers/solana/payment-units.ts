import { isFresh } from "../../chains/cache-age.ts";
import { limitUnits } from "../../chains/solana/compute-budget.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { simulate } from "../../chains/solana/simulate-wire-bytes.ts";
import { PAYMENT_UNITS } from "./spl-transfer.ts";

/** Room for the guards that a wallet can add to the transaction before it signs, compute units. */
const GUARD_UNITS = 60_000;
/** How long a limit is used for a token, and how long none is tried again, milliseconds. */
const CACHE_MS = 600_000;
const RETRY_MS = 10_000;

const cache = new WeakMap<SolanaChain, Map<string, { at: number; units: number | undefined }>>();

/**
 * Returns the compute unit limit of a buyer's transaction: what a simulation takes, room for guards, and a margin. Payments in
 * one token take the same units, so one simulation serves all for some minutes. When it fails, for example because the buyer
 * has no tokens yet, the limit is the highest that a payment gets.
 * @param draft unsigned bytes of the transaction, with that highest limit
 */
export async function choosePaymentUnits(
  chain: SolanaChain,
  { asset, draft }: { asset: string; draft: Uint8Array },
  now: number,
): Promise<number> {
  const known = cache.get(chain) ?? new Map<string, { at: number; units: number | undefined }>();
  cache.set(chain, known);
  const before = known.get(asset);
  if (before && isFresh(before.at, now, before.units === undefined ? RETRY_MS : CACHE_MS))
    return before.units ?? PAYMENT_UNITS;
  const outcome = await simulate(chain, draft).catch(() => undefined);
  const units = outcome?.ok ? limitUnits(outcome.units + GUARD_UNITS, PAYMENT_UNITS) : undefined;
  known.set(asset, { at: now, units });
  return units ?? PAYMENT_UNITS;
}
