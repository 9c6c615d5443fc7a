import { listPaymentsNamed } from "../../db/queries/payment-references.ts";
import {
  findMerchantSummary,
  listMerchantsNamed,
  listPaymentsOfPayer,
  type MerchantSummary,
} from "../../db/queries/payment-search.ts";
import type { Db } from "../../db/tables.ts";
import { listPaymentLines, type PaymentLine } from "./operator-actions.ts";

export type Found = { payments: PaymentLine[]; merchants: MerchantSummary[] };

/** Longest text that is searched for: longer than any id, reference, signature or name. */
const LONGEST = 512;

const nothing: Found = { payments: [], merchants: [] };

/**
 * Searches as an operator means a text: the id of a payment or of what belongs to it, a transaction's hash, a merchant's
 * reference, a payer (an address or a CAIP-10 account), or a merchant's id or name. Returns the newest payments first.
 * Searches that no index serves read a whole table, so the caller limits the time of a statement.
 */
export async function searchPayments({ db }: { db: Db }, given: string, limit: number): Promise<Found> {
  const text = given.trim();
  // Postgres stores no text with a NUL, and refuses to compare with it.
  if (text === "" || text.length > LONGEST || text.includes("\0")) return nothing;
  if (text.startsWith("mrch_")) {
    const merchant = await findMerchantSummary(db, text);
    return merchant ? { payments: [], merchants: [merchant] } : nothing;
  }
  const address = readAddress(text);
  const ofPayer = address === undefined ? [] : await listPaymentsOfPayer(db, { payers: spellings(address), limit });
  const ids = ofPayer.length > 0 ? ofPayer : await listPaymentsNamed(db, text, limit);
  return {
    payments: ids.length === 0 ? [] : await listPaymentLines({ db }, { ids, limit }),
    merchants: ids.length === 0 ? await listMerchantsNamed(db, text, limit) : [],
  };
}

/** Returns the address of a text that is an EVM or Solana address, alone or at the end of a CAIP-10 account. */
function readAddress(text: string): string | undefined {
  const address = text.split(":").at(-1) ?? "";
  return /^(0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44})$/.test(address) ? address : undefined;
}

/** Returns the forms that rows may have of an address: EVM addresses are stored in lower case, Solana's as they are. */
const spellings = (address: string) => [address, address.toLowerCase()];
