import { isHex, size } from "viem";
import type { OptionRow } from "../../db/queries/payment-options.ts";
import { getResultReader } from "../../transfers/find-transfer-driver.ts";
import type { Signed } from "../../transfers/verification.ts";
import type { WalletProofs } from "../../transfers/wallet-driver.ts";
import { findQuoteEnd } from "../options/quotes.ts";

/** A wallet's result of one action (specification, 2.10). */
export type WalletResult = { type: "walletRpc"; data: readonly unknown[] };

/** Number of bytes of the signature of a permit, which is by a plain key. */
const PERMIT_BYTES = 65;

/** Validates the form of an option's results. Returns the error, or undefined when they match its actions. */
export function validateResults(option: OptionRow, results: readonly WalletResult[]): string | undefined {
  const checks = getResultReader(option.chain).listChecks(option);
  // The allowance may have been granted in another way meanwhile. Then only the last signature is needed.
  const enough = option.kind === "permit2" && results.length === 1;
  if (results.length !== checks.length && !enough)
    return `results: expected ${checks.length} ${checks.length === 1 ? "result" : "results"}, one per action, and got ${results.length}`;
  for (const [index, check] of checks.slice(-results.length).entries()) {
    const data = results[index]?.data ?? [];
    if (data.length !== 1) return `results.${index}.data: expected one element`;
    const error = check(data[0]);
    if (error) return `results.${index}.data.0: ${error}`;
  }
  return undefined;
}

/**
 * Reads stored results. The last result is the proof of payment (hex; base64 on Solana). A permit, if there is one,
 * precedes it.
 */
export function readResults(results: unknown): WalletProofs {
  const given = Array.isArray(results) ? results.map(readFirstText) : [];
  const [before] = given.slice(0, -1);
  const isPermit = isHex(before) && size(before) === PERMIT_BYTES;
  return { proof: given.at(-1) ?? "", permit: isPermit ? before : null };
}

/** Returns an option with what the wallet returned for it. */
export function readSigned(option: OptionRow, results: unknown): Signed {
  const signed = getResultReader(option.chain).readSigned(option, readResults(results));
  const end = findQuoteEnd(option);
  return end === null || signed.kind !== "push" ? signed : { ...signed, moveBy: end };
}

function readFirstText(result: unknown): string {
  const isObject = typeof result === "object" && result !== null;
  const data: unknown = isObject && "data" in result && Array.isArray(result.data) ? result.data[0] : undefined;
  return typeof data === "string" ? data : "";
}
