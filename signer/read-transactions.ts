import type { Chain } from "../chains/chain.ts";
import type { FinalReading, FinalTransaction } from "../chains/final-transaction.ts";
import { getChainDriver } from "../chains/find-chain-driver.ts";
import type { SignerDeps } from "./signer-deps.ts";

/** Transactions that are read alone at the same time. */
const CONCURRENCY = 8;

/**
 * Reads transactions from the signer's own endpoints, together, and each alone when that fails: a hash that no endpoint can
 * answer must not hold up the others. Leaves out the
 * transactions that cannot be read. Stops when several in a row cannot, because the endpoints are down then.
 */
export async function readTransactions(
  { log }: Pick<SignerDeps, "log">,
  chain: Chain,
  hashes: readonly string[],
  reading: FinalReading = {},
): Promise<ReadonlyMap<string, FinalTransaction>> {
  const read = async (some: readonly string[]) => {
    try {
      return await getChainDriver(chain.chain).readFinalMovements(chain, some, reading);
    } catch (err) {
      log.warn({ err, chain: chain.chain, hashes: some.slice(0, CONCURRENCY) }, "transactions cannot be read");
      return undefined;
    }
  };
  const together = await read(hashes);
  if (together) return together;
  const found = new Map<string, FinalTransaction>();
  for (let at = 0; at < hashes.length && hashes.length > 1; at += CONCURRENCY) {
    const answers = await Promise.all(hashes.slice(at, at + CONCURRENCY).map((hash) => read([hash])));
    for (const [hash, transaction] of answers.flatMap((answer) => [...(answer ?? [])])) found.set(hash, transaction);
    if (answers.every((answer) => answer === undefined)) break;
  }
  return found;
}
