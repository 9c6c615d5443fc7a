import type { PaymentDeps } from "../payments/deps.ts";
import type { Limits } from "./limits.ts";
import type { Waiters } from "./waiters.ts";

/** What the ingress works with. Made once by main.ts; a test makes its own. */
export type ApiDeps = PaymentDeps & {
  waiters: Waiters;
  limits: Limits;
  /** How long buyers' data is kept, milliseconds. */
  collectedDataMs: number;
  /** Proxies whose word on the caller's address is believed: addresses and CIDR ranges. */
  trustedProxies: readonly string[];
  /** Runs a request so that its jobs carry its id. */
  inContext: (fields: { requestId: string }, work: () => void) => void;
  /** Where buyers and wallets reach us, without a slash at the end; payment links begin with it. */
  publicUrl: string;
  /** The operator's terms of service and privacy policy: https URLs. */
  legal: { termsUrl: string | undefined; privacyUrl: string | undefined };
  /** Schemes of apps that the checkout page may lead back to. */
  appSchemes: ReadonlySet<string>;
};
