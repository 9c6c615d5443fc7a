import { createHash } from "node:crypto";
import { base58 } from "@scure/base";
import { buildPayment, type ComputeBudget } from "../../chains/solana/build-payment.ts";
import { chooseLane } from "../../chains/solana/choose-lane.ts";
import { getSolanaToken, type SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { chooseUnitPrice } from "../../chains/solana/priority-fees.ts";
import { recentBlockhash } from "../../chains/solana/recent-blockhash.ts";
import { recordBlockhash, type SolanaOptionRow } from "../../db/queries/payment-options.ts";
import type { Mode } from "../../db/tables.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import type { WalletAction } from "../wallet-driver.ts";
import { choosePaymentUnits } from "./payment-units.ts";
import { PAYMENT_UNITS, toSplTransfer } from "./spl-transfer.ts";

/**
 * Slots for which an option with a new blockhash is valid. A blockhash is valid for 150 blocks; the margin leaves time
 * for the transaction to land.
 */
const GOOD_SLOTS = 125;

/** Returns until when an option with a blockhash issued now is valid. */
export function blockhashEnd(chain: SolanaChain, now: Date): Date {
  return new Date(now.getTime() + GOOD_SLOTS * chain.network.slotMs);
}

/**
 * Builds the transaction that pays an option, with a fresh blockhash, for the wallet to sign. The option is then valid
 * as long as the blockhash. In test mode the blockhash is invented, so that the signed transaction can never move
 * money. Throws `ChainError` when the cluster cannot be read.
 */
export async function buildSolanaAction(
  deps: Pick<TransferDeps, "db" | "now">,
  chain: SolanaChain,
  { option, mode }: { option: SolanaOptionRow; mode: Mode },
): Promise<WalletAction> {
  const now = deps.now();
  const isLive = mode === "live";
  const blockhash = isLive ? (await recentBlockhash(chain, now.getTime())).blockhash : inventBlockhash(option);
  const feePayer = await chooseLane(chain, { key: option.authorization_nonce, now: now.getTime(), isLive });
  const transfer = toSplTransfer(getSolanaToken(chain, option.asset), option, feePayer);
  const draft = buildPayment(transfer, { units: PAYMENT_UNITS, unitPrice: 0n }, blockhash);
  const bytes = isLive ? buildPayment(transfer, await chooseBudget(chain, { option, draft, now }), blockhash) : draft;
  await recordBlockhash(deps.db, { id: option.id, until: blockhashEnd(chain, now) });
  const transaction = Buffer.from(bytes).toString("base64");
  return { chain: option.chain, method: "solana_signTransaction", params: [{ transaction }] };
}

async function chooseBudget(
  chain: SolanaChain,
  { option, draft, now }: { option: SolanaOptionRow; draft: Uint8Array; now: Date },
): Promise<ComputeBudget> {
  const units = await choosePaymentUnits(chain, { asset: option.asset, draft }, now.getTime());
  return { units, unitPrice: await chooseUnitPrice(chain, units, now.getTime()) };
}

function inventBlockhash(option: SolanaOptionRow): string {
  return base58.encode(createHash("sha256").update(`test ${option.id}`).digest());
}
