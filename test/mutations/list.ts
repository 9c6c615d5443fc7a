import { bookingMutations } from "./booking.ts";
import { dbMutations } from "./db.ts";
import { flattenGroups, type Mutation } from "./mutation.ts";
import { payoutMutations } from "./payouts.ts";
import { refundMutations } from "./refunds.ts";
import { solanaMutations } from "./solana.ts";
import { transferMutations } from "./transfers.ts";

/** Every mutation that `npm run mutate` tries. */
export const mutations: readonly Mutation[] = flattenGroups([
  ...dbMutations,
  ...transferMutations,
  ...solanaMutations,
  ...payoutMutations,
  ...refundMutations,
  ...bookingMutations,
]);
