import type { PaymentDeps } from "../payments/deps.ts";
import type { Waiters } from "./waiters.ts";

/** What the ingress works with. Made once by main.ts; a test makes its own. */
export type ApiDeps = PaymentDeps & {
  waiters: Waiters;
  /** Where buyers and wallets reach us, without a slash at the end; payment links begin with it. */
  publicUrl: string;
};
