import type { RunbookCase } from "../runbook-case.ts";
import { chainCases } from "./chains.ts";
import { laneCases } from "./lanes.ts";
import { moneyCases } from "./money.ts";
import { operatorCases } from "./operators.ts";
import { paymentCases } from "./payments.ts";
import { payoutCases } from "./payouts.ts";
import { processCases } from "./processes.ts";

/**
 * Every case, in the order in which they run: `NoPaymentSucceeds` needs that no payment has succeeded, and the case of the
 * audit log changes entries that others read.
 */
export const allCases: readonly RunbookCase[] = [
  ...paymentCases,
  ...laneCases,
  ...moneyCases,
  ...payoutCases,
  ...chainCases,
  ...processCases,
  ...operatorCases,
];
