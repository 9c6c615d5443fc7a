import { type Blockhash, readBlockhash } from "../../chains/solana/cluster-state.ts";
import { compareTransaction, validateSignatures } from "../../chains/solana/compare-transaction.ts";
import { getSolanaToken, type SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { simulate } from "../../chains/solana/simulate-wire-bytes.ts";
import { type ParsedTransaction, parseTransaction } from "../../chains/solana/wire-format.ts";
import { SCREENED_OUT, type ScreeningDeps, screenByList } from "../list-screening.ts";
import type { SolanaSigned, VerificationResult } from "../verification.ts";
import { toSplTransfer } from "./spl-transfer.ts";

/** Compares the transaction that a wallet signed with the requested one, and verifies its signature. Calls no cluster. */
export function checkSolanaSignature(chain: SolanaChain, signed: SolanaSigned): VerificationResult {
  const parsed = parseTransaction(Buffer.from(signed.proof, "base64"));
  if ("error" in parsed) return { ok: false, reason: parsed.error };
  const differences = listDifferences(chain, signed, parsed);
  if (differences.length > 0)
    return { ok: false, reason: `the transaction is not the one that was asked for: ${differences.join("; ")}` };
  const error = validateSignatures(parsed, signed.payer);
  return error ? { ok: false, reason: error } : { ok: true, smartWallet: false };
}

function listDifferences(chain: SolanaChain, signed: SolanaSigned, parsed: ParsedTransaction): string[] {
  if (!chain.lanes.includes(parsed.feePayer)) return [`its fee payer ${parsed.feePayer} is not ours`];
  const expected = toSplTransfer(getSolanaToken(chain, signed.asset), signed, parsed.feePayer);
  return compareTransaction(parsed, expected, { maxFee: chain.network.maxPriorityFee, ours: chain.ours });
}

/**
 * Verifies the signatures, screens the payers, and simulates each transaction on the newest state (balances, freezes, guards,
 * blockhash). The result of a valid one has the last block height at which it can be included. Throws ChainError when the
 * cluster cannot be read; no transaction is rejected then.
 */
export async function verifySolana(
  deps: ScreeningDeps,
  chain: SolanaChain,
  all: readonly SolanaSigned[],
): Promise<[SolanaSigned, VerificationResult][]> {
  const checked = all.map((one): [SolanaSigned, VerificationResult] => [one, checkSolanaSignature(chain, one)]);
  const good = checked.flatMap(([one, result]) => (result.ok ? [one] : []));
  if (good.length === 0) return checked;
  const refused = screenByList(
    deps,
    chain.chain,
    good.map(({ payer }) => payer),
  );
  const outcomes = await Promise.all(good.map((one) => simulate(chain, Buffer.from(one.proof, "base64"))));
  const newest = await readBlockhash(chain);
  const simulated = good.map((one, index): [SolanaSigned, VerificationResult] => {
    const outcome = outcomes[index];
    if (refused.has(one.payer)) return [one, { ok: false, reason: SCREENED_OUT }];
    if (!outcome?.ok) return [one, { reason: "not tried", ok: false, ...outcome }];
    return [one, { ok: true, smartWallet: false, lastValidHeight: lastHeightOf(newest, outcome.slot) }];
  });
  return [...checked.filter(([, result]) => !result.ok), ...simulated];
}

/**
 * Returns the last block height of any blockhash that is valid in a slot. The endpoint that returned the newest blockhash can
 * lag behind that slot, and a slot has at most one block. A height that is a little too high does no harm.
 */
function lastHeightOf({ lastValidHeight, slot: readSlot }: Blockhash, slot: number): number {
  return lastValidHeight + Math.max(0, slot - readSlot);
}
