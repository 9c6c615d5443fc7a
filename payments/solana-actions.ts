import { createHash } from "node:crypto";
import { base58 } from "@scure/base";
import { getSolanaChain } from "../chains/open.ts";
import { chooseUnitPrice } from "../chains/solana/fees.ts";
import { chooseLane } from "../chains/solana/lanes.ts";
import { getSolanaToken, type SolanaChain } from "../chains/solana/open.ts";
import { buildPayment } from "../chains/solana/payment.ts";
import { recentBlockhash } from "../chains/solana/recent.ts";
import { noteBlockhash, type OptionRow } from "../db/options.ts";
import type { Mode } from "../db/tables.ts";
import { PAYMENT_UNITS, toSplTransfer } from "../transfers/solana/authorization.ts";
import type { PaymentDeps } from "./deps.ts";
import type { WalletAction } from "./views.ts";

/**
 * A blockhash lives for 150 blocks. What is confirmed in the last of them might not land any more, so an option is
 * called stale before.
 */
const GOOD_SLOTS = 125;

/** Until when an option is good whose blockhash is handed out now. */
export function blockhashEnd(chain: SolanaChain, now: Date): Date {
  return new Date(now.getTime() + GOOD_SLOTS * chain.network.slotMs);
}

/**
 * The transaction that pays an option, for the wallet to sign, on a fresh blockhash; the option is good from now on for
 * as long as that. In test mode the blockhash is invented, so that what is signed can never move money.
 * Throws ChainFault when the cluster cannot be asked.
 */
export async function buildSolanaAction(
  deps: PaymentDeps,
  { option, mode }: { option: OptionRow; mode: Mode },
): Promise<WalletAction> {
  const chain = getSolanaChain(deps.chains, option.chain);
  const now = deps.now();
  const isLive = mode === "live";
  const blockhash = isLive ? (await recentBlockhash(chain, now.getTime())).blockhash : inventBlockhash(option);
  const feePayer = await chooseLane(chain, { key: option.authorization_nonce, now: now.getTime(), isLive });
  const unitPrice = isLive ? await chooseUnitPrice(chain, PAYMENT_UNITS, now.getTime()) : 0n;
  const transfer = toSplTransfer(getSolanaToken(chain, option.asset), option, feePayer);
  const bytes = buildPayment(transfer, { units: PAYMENT_UNITS, unitPrice }, blockhash);
  await noteBlockhash(deps.db, { id: option.id, until: blockhashEnd(chain, now) });
  const transaction = Buffer.from(bytes).toString("base64");
  return { chain: option.chain, method: "solana_signTransaction", params: [{ transaction }] };
}

function inventBlockhash(option: OptionRow): string {
  return base58.encode(createHash("sha256").update(`test ${option.id}`).digest());
}

/** The earlier of two times, of which either may be unset. */
export function earlier(one: Date | null, other: Date | null): Date | null {
  if (one === null || other === null) return one ?? other;
  return one < other ? one : other;
}
