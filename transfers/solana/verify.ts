import { findDifferences, findSignatureFault } from "../../chains/solana/compare.ts";
import { getSolanaToken, type SolanaChain } from "../../chains/solana/open.ts";
import { type Blockhash, readBlockhash } from "../../chains/solana/reads.ts";
import { simulate } from "../../chains/solana/simulate.ts";
import { type ParsedTransaction, parseTransaction } from "../../chains/solana/transactions.ts";
import { SCREENED_OUT, type ScreeningDeps, screenByList } from "../list-screening.ts";
import type { Signed, Verdict } from "../verdict.ts";
import { toSplTransfer } from "./authorization.ts";

/** Compares the transaction that a wallet signed with the requested one, and verifies its signature. Calls no cluster. */
export function checkSolanaSignature(chain: SolanaChain, signed: Signed): Verdict {
  const parsed = parseTransaction(Buffer.from(signed.proof, "base64"));
  if ("fault" in parsed) return { ok: false, reason: parsed.fault };
  const differences = listDifferences(chain, signed, parsed);
  if (differences.length > 0)
    return { ok: false, reason: `the transaction is not the one that was asked for: ${differences.join("; ")}` };
  const error = findSignatureFault(parsed, signed.payer);
  return error ? { ok: false, reason: error } : { ok: true, smartWallet: false };
}

function listDifferences(chain: SolanaChain, signed: Signed, parsed: ParsedTransaction): string[] {
  if (!chain.lanes.includes(parsed.feePayer)) return [`its fee payer ${parsed.feePayer} is not ours`];
  const expected = toSplTransfer(getSolanaToken(chain, signed.asset), signed, parsed.feePayer);
  return findDifferences(parsed, expected, { maxFee: chain.network.maxPriorityFee, ours: chain.ours });
}

/**
 * Verifies the signatures, screens the payers, and simulates each transaction on the newest state (balances, freezes, guards,
 * blockhash). The result of a valid one has the last block height at which it can be included. Throws ChainFault when the
 * cluster cannot be read; no transaction is rejected then.
 */
export async function judgeSolana(
  deps: ScreeningDeps,
  chain: SolanaChain,
  all: readonly Signed[],
): Promise<[Signed, Verdict][]> {
  const checked = all.map((one): [Signed, Verdict] => [one, checkSolanaSignature(chain, one)]);
  const good = checked.flatMap(([one, result]) => (result.ok ? [one] : []));
  if (good.length === 0) return checked;
  const refused = screenByList(
    deps,
    chain.chain,
    good.map(({ payer }) => payer),
  );
  const outcomes = await Promise.all(good.map((one) => simulate(chain, Buffer.from(one.proof, "base64"))));
  const newest = await readBlockhash(chain);
  const simulated = good.map((one, index): [Signed, Verdict] => {
    const outcome = outcomes[index];
    if (refused.has(one.payer)) return [one, { ok: false, reason: SCREENED_OUT }];
    if (!outcome?.ok) return [one, { reason: "not tried", ok: false, ...outcome }];
    return [one, { ok: true, smartWallet: false, validBefore: lastHeightOf(newest, outcome.slot) }];
  });
  return [...checked.filter(([, result]) => !result.ok), ...simulated];
}

/**
 * Returns the last block height of any blockhash that is valid in a slot. The endpoint that returned the newest blockhash can
 * lag behind that slot, and a slot has at most one block. A height that is a little too high does no harm.
 */
function lastHeightOf({ lastHeight, slot: readSlot }: Blockhash, slot: number): number {
  return lastHeight + Math.max(0, slot - readSlot);
}
