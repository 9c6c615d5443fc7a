import { PublicKey } from "@solana/web3.js";
import { ChainFault } from "../faults.ts";
import type { SolanaChain } from "./open.ts";

/** Signatures in one call; what the method allows. */
const PAGE = 1_000;

/** A transaction that named an account and went through. */
export type Landed = { signature: string; slot: number };

/**
 * The final transactions that named an account after a known one, oldest first; failed ones are left out but counted in
 * `newest`, the signature to go on from. With nothing known, the whole history.
 */
export async function listLandedSince(
  chain: SolanaChain,
  account: string,
  known: string | undefined,
): Promise<{ landed: Landed[]; newest: string | undefined }> {
  const all: { signature: string; slot: number; err: unknown }[] = [];
  for (let before: string | undefined; ; ) {
    const page = await chain.rpc.ask("getSignaturesForAddress", (connection) =>
      connection.getSignaturesForAddress(
        new PublicKey(account),
        { limit: PAGE, ...(known ? { until: known } : {}), ...(before ? { before } : {}) },
        "finalized",
      ),
    );
    all.push(...page);
    before = page.at(-1)?.signature;
    if (page.length < PAGE) break;
  }
  const landed = all.filter(({ err }) => err === null).map(({ signature, slot }) => ({ signature, slot }));
  return { landed: landed.toReversed(), newest: all[0]?.signature ?? known };
}

/** The newest final transaction that named an account. */
export async function findNewest(chain: SolanaChain, account: string): Promise<string | undefined> {
  const [newest] = await chain.rpc.ask("getSignaturesForAddress", (connection) =>
    connection.getSignaturesForAddress(new PublicKey(account), { limit: 1 }, "finalized"),
  );
  return newest?.signature;
}

/** A final transaction whole. Throws ChainFault `rpc_behind` while the endpoint does not have it. */
export async function readTransaction(chain: SolanaChain, signature: string) {
  const found = await chain.rpc.ask("getTransaction", (connection) =>
    connection.getTransaction(signature, { commitment: "finalized", maxSupportedTransactionVersion: 0 }),
  );
  if (!found) throw new ChainFault("rpc_behind", { detail: `transaction ${signature}` });
  return found;
}
