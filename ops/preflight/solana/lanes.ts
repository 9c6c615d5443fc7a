import { LAMPORTS_PER_SOL } from "@solana/web3.js";
import type { SolanaChain } from "../../../chains/solana/open-solana-chain.ts";
import { calculateFee } from "../../../chains/solana/priority-fees.ts";
import { failure, type Outcome, ok, warning } from "../finding.ts";

/** A relayer that can pay for fewer payments gets a warning. */
const FEW_PAYMENTS = 100n;
/** The relayer's and the buyer's or treasury's. */
const SIGNATURES = 2;

/**
 * Returns the outcome of each relayer by what its balance pays for. A payment is its transaction, its payout in a
 * transaction of its own, and the payout's marker, whose rent comes back after `payoutMarkerDays`.
 * @param rents lamports for the accounts that are missing, which the first relayer pays, and for one marker
 */
export function describeRelayers(
  { network, lanes }: SolanaChain,
  balances: readonly bigint[],
  rents: { accounts: bigint; marker: bigint },
): Outcome[] {
  const fee = calculateFee({ signatures: SIGNATURES, units: 0n, unitPrice: 0n }) + network.maxPriorityFee;
  const perPayment = 2n * fee + rents.marker;
  return lanes.map((address, index) => {
    const name = `lane ${index} gas`;
    const balance = balances[index] ?? 0n;
    const left = balance - (index === 0 ? rents.accounts : 0n);
    const payments = left > 0n ? left / perPayment : 0n;
    const detail = `${inSol(balance)}: at least ${payments} payments, ${inSol(rents.marker)} of each held as rent`;
    const remedy = `Send SOL to ${address}.`;
    if (payments === 0n) return failure(name, detail, remedy);
    return payments < FEW_PAYMENTS ? warning(name, detail, remedy) : ok(name, detail);
  });
}

/** Returns lamports as text in SOL. */
export function inSol(lamports: bigint): string {
  return `${Number(lamports) / LAMPORTS_PER_SOL} SOL`;
}
