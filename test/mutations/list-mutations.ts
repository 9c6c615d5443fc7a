import { amountMutations } from "./amount-mutations.ts";
import { bookingMutations } from "./booking-mutations.ts";
import { clientMutations } from "./client-mutations.ts";
import { consoleMutations } from "./console-mutations.ts";
import { dbMutations } from "./db-mutations.ts";
import { destinationMutations } from "./destination-mutations.ts";
import { ingressMutations } from "./ingress-mutations.ts";
import { keyMutations } from "./key-mutations.ts";
import { monitoringMutations } from "./monitoring-mutations.ts";
import { flattenGroups, type Mutation } from "./mutation.ts";
import { payoutMutations } from "./payout-mutations.ts";
import { pollingMutations } from "./polling-mutations.ts";
import { priceMutations } from "./price-mutations.ts";
import { refundMutations } from "./refund-mutations.ts";
import { retentionMutations } from "./retention-mutations.ts";
import { secretMutations } from "./secret-mutations.ts";
import { signerMutations } from "./signer-mutations.ts";
import { solanaMutations } from "./solana-mutations.ts";
import { transferMutations } from "./transfer-mutations.ts";
import { webhookMutations } from "./webhook-mutations.ts";

/** Every mutation that `npm run mutate` tries. */
export const mutations: readonly Mutation[] = flattenGroups([
  ...dbMutations,
  ...transferMutations,
  ...webhookMutations,
  ...signerMutations,
  ...solanaMutations,
  ...payoutMutations,
  ...refundMutations,
  ...retentionMutations,
  ...bookingMutations,
  ...secretMutations,
  ...keyMutations,
  ...destinationMutations,
  ...clientMutations,
  ...consoleMutations,
  ...pollingMutations,
  ...ingressMutations,
  ...priceMutations,
  ...amountMutations,
  ...monitoringMutations,
]);
