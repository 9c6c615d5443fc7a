import type { Status } from "../../chains/solana/reads.ts";
import type { TransactionRow } from "../../db/transactions.ts";

/**
 * A transaction of ours with what the cluster says of it; undefined when it has not seen it. `slot`: as far as whoever
 * said so has come.
 */
export type Followed = { row: TransactionRow; status: Status | undefined; slot: number };
