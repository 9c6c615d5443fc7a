import type { Buyer, PayOption, WalletResult } from "../../local/buyer-client.ts";
import type { Plan } from "./payment-plan.ts";

/** The buyers on one chain and the third parties that disturb them. */
export type Payers = {
  /** CAIP-2 */
  chain: string;
  buyerOf(plan: Plan): Buyer;
  /** Returns whether what was signed can no longer pay: its blockhash may have expired, or its transaction failed. */
  canNoLongerPay(plan: Plan, signed: Signed): Promise<boolean>;
  /** Disturbs a signed payment as its plan says. */
  disturb(plan: Plan, signed: Signed): Promise<void>;
  /** Reverts the disturbance where the plan says so. */
  revertDisturbance(plan: Plan, signed: Signed): void;
};
export type Signed = { option: PayOption; results: WalletResult[] };
