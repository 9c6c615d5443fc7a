import { findDifferences, findSignatureFault } from "../../chains/solana/compare.ts";
import { getSolanaToken, type SolanaChain } from "../../chains/solana/open.ts";
import { type Blockhash, readBlockhash } from "../../chains/solana/reads.ts";
import { simulate } from "../../chains/solana/simulate.ts";
import { type ParsedTransaction, parseTransaction } from "../../chains/solana/transactions.ts";
import { SCREENED_OUT, type ScreeningDeps, screenAccounts } from "../screening.ts";
import type { Signed, Verdict } from "../verdict.ts";
import { toSplTransfer } from "./authorization.ts";

/** What a wallet has signed, compared with what it was asked to sign, and its signature; asks nobody. */
export function checkSolanaSignature(chain: SolanaChain, signed: Signed): Verdict {
  const parsed = parseTransaction(Buffer.from(signed.proof, "base64"));
  if ("fault" in parsed) return { ok: false, reason: parsed.fault };
  const differences = listDifferences(chain, signed, parsed);
  if (differences.length > 0)
    return { ok: false, reason: `the transaction is not the one that was asked for: ${differences.join("; ")}` };
  const fault = findSignatureFault(parsed, signed.payer);
  return fault ? { ok: false, reason: fault } : { ok: true, smartWallet: false };
}

function listDifferences(chain: SolanaChain, signed: Signed, parsed: ParsedTransaction): string[] {
  if (!chain.lanes.includes(parsed.feePayer)) return [`its fee payer ${parsed.feePayer} is not ours`];
  const expected = toSplTransfer(getSolanaToken(chain, signed.asset), signed, parsed.feePayer);
  return findDifferences(parsed, expected, { maxFee: chain.network.maxPriorityFee, ours: chain.ours });
}

/**
 * The same, then screening, and each transaction tried on the newest state (balances, freezes, guards, blockhash). A good
 * one's verdict says after which block height it can no longer land. Throws ChainFault when the cluster cannot be asked:
 * then nothing is known, and nothing refused.
 */
export async function judgeSolana(
  deps: ScreeningDeps,
  chain: SolanaChain,
  all: readonly Signed[],
): Promise<[Signed, Verdict][]> {
  const formal = all.map((one): [Signed, Verdict] => [one, checkSolanaSignature(chain, one)]);
  const good = formal.flatMap(([one, verdict]) => (verdict.ok ? [one] : []));
  if (good.length === 0) return formal;
  const refused = await screenAccounts(
    deps,
    chain,
    good.map(({ payer }) => payer),
  );
  const outcomes = await Promise.all(good.map((one) => simulate(chain, Buffer.from(one.proof, "base64"))));
  const newest = await readBlockhash(chain);
  const judged = good.map((one, index): [Signed, Verdict] => {
    const outcome = outcomes[index];
    if (refused.has(one.payer)) return [one, { ok: false, reason: SCREENED_OUT }];
    if (!outcome?.ok) return [one, { reason: "not tried", ok: false, ...outcome }];
    return [one, { ok: true, smartWallet: false, validBefore: lastHeightOf(newest, outcome.slot) }];
  });
  return [...formal.filter(([, verdict]) => !verdict.ok), ...judged];
}

/**
 * The last height of any blockhash that is good in a slot. Whoever told the newest one may lag behind that slot, and no
 * slot has more than one block. Taking bytes for alive a little longer than they are does no harm.
 */
function lastHeightOf({ lastHeight, slot: told }: Blockhash, slot: number): number {
  return lastHeight + Math.max(0, slot - told);
}
