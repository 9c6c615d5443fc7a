import { VersionedTransaction } from "@solana/web3.js";
import type { SolanaChain } from "./open.ts";

/**
 * Whether a transaction would go through now. `later`: it is our own side that is not ready, for example a relayer
 * without money for the fee.
 */
export type Outcome = { ok: true } | { ok: false; reason: string; later?: true };

/** Tries a transaction (wire bytes, signatures not asked) on the newest state, its own blockhash included. */
export async function simulate(chain: SolanaChain, bytes: Uint8Array): Promise<Outcome> {
  const transaction = VersionedTransaction.deserialize(bytes);
  const { value } = await chain.rpc.ask("simulateTransaction", (connection) =>
    connection.simulateTransaction(transaction, { sigVerify: false, commitment: "processed" }),
  );
  return value.err === null ? { ok: true } : describe(value.err, value.logs ?? []);
}

/** Errors of the fee payer, which is ours: the buyer can do nothing about them. */
const oursToMend = ["InsufficientFundsForFee", "AccountNotFound", "InvalidAccountForFee", "InsufficientFundsForRent"];

function describe(error: unknown, logs: readonly string[]): Outcome {
  const code = typeof error === "string" ? error : (Object.keys(error as object)[0] ?? "unknown");
  if (code === "BlockhashNotFound")
    return { ok: false, reason: "the transaction's blockhash has expired; fetch the option's actions again" };
  if (oursToMend.includes(code)) return { ok: false, later: true, reason: "the network's fee cannot be paid now" };
  const said = logs.findLast((line) => /Error: /.test(line))?.replace(/^.*Error: /, "");
  return { ok: false, reason: `the transaction would fail: ${said ?? JSON.stringify(error)}` };
}
