import type { Blockhash } from "../../chains/solana/cluster-state.ts";
import { compareTransaction, validateSignatures } from "../../chains/solana/compare-transaction.ts";
import { getSolanaToken, type SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { recentBlockhash } from "../../chains/solana/recent-blockhash.ts";
import { simulate } from "../../chains/solana/simulate-wire-bytes.ts";
import { type ParsedTransaction, parseTransaction } from "../../chains/solana/wire-format.ts";
import { SCREENED_OUT, type ScreeningDeps, screenByList } from "../list-screening.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import type { SolanaSigned, VerificationResult } from "../verification.ts";
import { type ComparedPayment, listPayable, noteUnits } from "./plain-payments.ts";
import { toSplTransfer } from "./spl-transfer.ts";

/** Compares the transaction that a wallet signed with the requested one, and verifies its signature. Calls no cluster. */
export function checkSolanaSignature(chain: SolanaChain, signed: SolanaSigned): VerificationResult {
  const compared = comparePayment(chain, signed);
  return typeof compared === "string" ? { ok: false, reason: compared } : { ok: true, smartWallet: false };
}

/** Returns the parsed transaction, or the reason to refuse it. */
function comparePayment(chain: SolanaChain, signed: SolanaSigned): ComparedPayment | string {
  const parsed = parseTransaction(Buffer.from(signed.proof, "base64"));
  if ("error" in parsed) return parsed.error;
  const differences = listDifferences(chain, signed, parsed);
  if (differences.length > 0) return `the transaction is not the one that was asked for: ${differences.join("; ")}`;
  return validateSignatures(parsed, signed.payer) ?? { signed, parsed };
}

function listDifferences(chain: SolanaChain, signed: SolanaSigned, parsed: ParsedTransaction): string[] {
  if (!chain.lanes.includes(parsed.feePayer)) return [`its fee payer ${parsed.feePayer} is not ours`];
  const expected = toSplTransfer(getSolanaToken(chain, signed.asset), signed, parsed.feePayer);
  return compareTransaction(parsed, expected, { maxFee: chain.network.maxPriorityFee, ours: chain.ours });
}

/**
 * Verifies the signatures, screens the payers, and checks each transaction on the newest state (balances, freezes, guards,
 * blockhash): together where reading the accounts decides, and otherwise by its simulation. The result of a valid one has
 * the last block height at which it can be included. Throws ChainError when the cluster cannot be read; no transaction is
 * rejected then.
 */
export async function verifySolana(
  deps: ScreeningDeps & Pick<TransferDeps, "now">,
  chain: SolanaChain,
  all: readonly SolanaSigned[],
): Promise<[SolanaSigned, VerificationResult][]> {
  const compared = all.map((signed) => ({ signed, outcome: comparePayment(chain, signed) }));
  const different = compared.flatMap(({ signed, outcome }): [SolanaSigned, VerificationResult][] =>
    typeof outcome === "string" ? [[signed, { ok: false, reason: outcome }]] : [],
  );
  const good = compared.flatMap(({ outcome }) => (typeof outcome === "string" ? [] : [outcome]));
  if (good.length === 0) return different;
  const payers = good.map(({ signed }) => signed.payer);
  const refused = screenByList(deps, chain.chain, payers);
  const now = deps.now().getTime();
  const [outcomes, recent] = await Promise.all([checkOnNewestState(chain, good, now), recentBlockhash(chain, now)]);
  const checked = good.map((one): [SolanaSigned, VerificationResult] => {
    const outcome = outcomes.get(one);
    if (refused.has(one.signed.payer)) return [one.signed, { ok: false, reason: SCREENED_OUT }];
    if (!outcome?.ok) return [one.signed, { reason: "not tried", ok: false, ...outcome }];
    return [one.signed, { ok: true, smartWallet: false, lastValidHeight: lastHeightOf(recent, outcome.slot) }];
  });
  return [...different, ...checked];
}

type Outcome = { ok: true; slot: number } | { ok: false; reason: string; later?: true };

/** Reads the accounts of all payments at once, and simulates those that this does not accept. */
async function checkOnNewestState(
  chain: SolanaChain,
  payments: readonly ComparedPayment[],
  now: number,
): Promise<Map<ComparedPayment, Outcome>> {
  const payable = await listPayable(chain, payments, now);
  const outcomes = await Promise.all(
    payments.map(async (one): Promise<[ComparedPayment, Outcome]> => {
      const slot = payable.get(one);
      if (slot !== undefined) return [one, { ok: true, slot }];
      const outcome = await simulate(chain, one.parsed.bytes);
      if (outcome.ok) noteUnits(chain, one, outcome.units, now);
      return [one, outcome];
    }),
  );
  return new Map(outcomes);
}

/**
 * Returns the last block height of any blockhash that is valid in a slot. The recent blockhash may be of an earlier slot, and
 * a slot has at most one block. A height that is a little too high does no harm.
 */
function lastHeightOf({ lastValidHeight, slot: readSlot }: Blockhash, slot: number): number {
  return lastValidHeight + Math.max(0, slot - readSlot);
}
