import type { Status } from "../../chains/solana/reads.ts";
import type { TransactionRow } from "../../db/transactions.ts";

/**
 * A transaction of ours with its status, undefined when the endpoint does not know it. `slot` is the newest slot of the
 * endpoint that returned the status.
 */
export type Followed = { row: TransactionRow; status: Status | undefined; slot: number };
