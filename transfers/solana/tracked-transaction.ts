import type { SignatureStatus } from "../../chains/solana/signature-statuses.ts";
import type { SolanaTransactionRow } from "../../db/queries/solana-transactions.ts";

/**
 * A transaction of ours with its status, undefined when the endpoint does not know it. `slot` is the newest slot of the
 * endpoint that returned the status.
 */
export type TrackedTransaction = { row: SolanaTransactionRow; status: SignatureStatus | undefined; slot: number };
