import type { Buyer, PayOption, WalletResult } from "../../ops/local/wallet.ts";
import type { Plan } from "./plan.ts";

/** Buyers on one chain, and those who get in their way. */
export type Payers = {
  /** CAIP-2 */
  chain: string;
  buyerOf(plan: Plan): Buyer;
  /** Whether what was signed is worth nothing any more: a blockhash that may be dead, a transaction that has failed. */
  isWorthless(plan: Plan, signed: Signed): Promise<boolean>;
  /** What the plan has in store for a payment that was signed. */
  disturb(plan: Plan, signed: Signed): Promise<void>;
  /** Takes that back, where the plan says so. */
  relent(plan: Plan, signed: Signed): void;
};
export type Signed = { option: PayOption; results: WalletResult[] };
