import { type Hex, isHex, size } from "viem";
import { describeWrongForm } from "../chains/solana/compare.ts";
import type { OptionRow } from "../db/options.ts";

/** What a wallet hands back: one result per action, in order (specification, 2.10). */
export type WalletResult = { type: "walletRpc"; data: readonly unknown[] };

/** A result is a signature, the hash of a transaction that the wallet sent, or on Solana the signed transaction. */
type Step = "signature" | "transaction" | "signed transaction";

/** Smart wallets with many owners make long signatures; a wallet that is still to be deployed brings its deployment. */
const LONGEST_BYTES = 8_000;
const KEY_SIGNATURE_BYTES = 65;

/** What is wrong with the form of results for an option; undefined when they have the form of its actions. */
export function findResultsFault(option: OptionRow, results: readonly WalletResult[]): string | undefined {
  const steps = listSteps(option);
  // The allowance may have come about in another way meanwhile: then the last signature is all that is needed.
  const enough = option.kind === "permit2" && results.length === 1;
  if (results.length !== steps.length && !enough)
    return `results: expected ${steps.length} ${steps.length === 1 ? "result" : "results"}, one per action, and got ${results.length}`;
  for (const [index, step] of steps.slice(-results.length).entries()) {
    const data = results[index]?.data ?? [];
    if (data.length !== 1) return `results.${index}.data: expected one element`;
    const fault = findStepFault(step, data[0]);
    if (fault) return `results.${index}.data.0: ${fault}`;
  }
  return undefined;
}

function listSteps({ kind, allowance }: OptionRow): Step[] {
  if (kind === "push") return ["transaction"];
  if (kind === "spl") return ["signed transaction"];
  if (!allowance) return ["signature"];
  if (allowance.by === "permit") return ["signature", "signature"];
  return allowance.fromZero ? ["transaction", "transaction", "signature"] : ["transaction", "signature"];
}

function findStepFault(step: Step, data: unknown): string | undefined {
  if (step === "signed transaction")
    return typeof data === "string" ? describeWrongForm(data) : "expected the signed transaction in base64";
  const what = step === "signature" ? "the signature" : "the transaction's hash";
  if (typeof data !== "string") return `expected ${what} as a hex string`;
  if (!isHex(data) || data.length % 2 !== 0) return `${what} is not a hex string`;
  const bytes = size(data);
  if (step === "transaction") return bytes === 32 ? undefined : `expected ${what}, 32 bytes`;
  // No shorter one is known, and 32 bytes are a hash.
  if (bytes < KEY_SIGNATURE_BYTES) return `${what} is shorter than ${KEY_SIGNATURE_BYTES} bytes`;
  return bytes > LONGEST_BYTES ? `${what} is longer than ${LONGEST_BYTES} bytes` : undefined;
}

/**
 * What stored results say: the proof of payment is the last one (in hex; on Solana in base64); a permit, if there is one,
 * came before it.
 */
export function readResults(results: unknown): { proof: string; permit: Hex | null } {
  const given = (results as WalletResult[]).map(({ data }) => data[0] as string);
  const [before] = given.slice(0, -1) as Hex[];
  const isPermit = before !== undefined && size(before) === KEY_SIGNATURE_BYTES;
  return { proof: given.at(-1) ?? "", permit: isPermit ? before : null };
}
