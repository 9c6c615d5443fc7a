import { type Hex, hexToBytes, isHex, size } from "viem";
import { validateResultFormat } from "../../chains/solana/compare-transaction.ts";
import type { OptionRow } from "../../db/queries/payment-options.ts";
import type { Signed } from "../../transfers/verification.ts";

/** A wallet's result of one action (specification, 2.10). */
export type WalletResult = { type: "walletRpc"; data: readonly unknown[] };

/**
 * The form of a result: a signature, the hash of a transaction that the wallet sent, or Solana's signed transaction.
 */
type Step = "signature" | "transaction" | "signed transaction";

/**
 * Maximum length of a signature. Multisig wallets sign long ones; an undeployed wallet includes its deployment data.
 */
const LONGEST_BYTES = 8_000;
const KEY_SIGNATURE_BYTES = 65;

/** Validates the form of an option's results. Returns the error, or undefined when they match its actions. */
export function validateResults(option: OptionRow, results: readonly WalletResult[]): string | undefined {
  const steps = listSteps(option);
  // The allowance may have been granted in another way meanwhile. Then only the last signature is needed.
  const enough = option.kind === "permit2" && results.length === 1;
  if (results.length !== steps.length && !enough)
    return `results: expected ${steps.length} ${steps.length === 1 ? "result" : "results"}, one per action, and got ${results.length}`;
  for (const [index, step] of steps.slice(-results.length).entries()) {
    const data = results[index]?.data ?? [];
    if (data.length !== 1) return `results.${index}.data: expected one element`;
    const error = validateResult(step, data[0]);
    if (error) return `results.${index}.data.0: ${error}`;
  }
  return undefined;
}

function listSteps({ kind, allowance }: OptionRow): Step[] {
  if (kind === "push") return ["transaction"];
  if (kind === "spl") return ["signed transaction"];
  if (!allowance) return ["signature"];
  if (allowance.by === "permit") return ["signature", "signature"];
  return allowance.zeroAllowanceFirst ? ["transaction", "transaction", "signature"] : ["transaction", "signature"];
}

function validateResult(step: Step, data: unknown): string | undefined {
  if (step === "signed transaction")
    return typeof data === "string" ? validateResultFormat(data) : "expected the signed transaction in base64";
  const what = step === "signature" ? "the signature" : "the transaction's hash";
  if (typeof data !== "string") return `expected ${what} as a hex string`;
  if (!isHex(data) || data.length % 2 !== 0) return `${what} is not a hex string`;
  const bytes = size(data);
  if (step === "transaction") return bytes === 32 ? undefined : `expected ${what}, 32 bytes`;
  // No signature scheme has shorter signatures, and 32 bytes are likely a hash sent by mistake.
  if (bytes < KEY_SIGNATURE_BYTES) return `${what} is shorter than ${KEY_SIGNATURE_BYTES} bytes`;
  return bytes > LONGEST_BYTES ? `${what} is longer than ${LONGEST_BYTES} bytes` : undefined;
}

/**
 * Reads stored results. The last result is the proof of payment (hex; base64 on Solana). A permit, if there is one,
 * precedes it.
 */
export function readResults(results: unknown): { proof: string; permit: Hex | null } {
  const given = Array.isArray(results) ? results.map(readFirstText) : [];
  const [before] = given.slice(0, -1);
  const isPermit = isHex(before) && size(before) === KEY_SIGNATURE_BYTES;
  return { proof: given.at(-1) ?? "", permit: isPermit ? before : null };
}

/** Returns an option with what the wallet returned for it. A proof that should be hex and is not becomes empty. */
export function readSigned(option: OptionRow, results: unknown): Signed {
  const { proof, permit } = readResults(results);
  if (option.kind === "spl") return { ...option, proof };
  return { ...option, proof: isHex(proof) ? proof : "0x", permit };
}

function readFirstText(result: unknown): string {
  const isObject = typeof result === "object" && result !== null;
  const data: unknown = isObject && "data" in result && Array.isArray(result.data) ? result.data[0] : undefined;
  return typeof data === "string" ? data : "";
}

/** Decodes a proof in hex to bytes. Throws when it is not hex. */
export function decodeProof(proof: string): Buffer {
  if (!isHex(proof)) throw new Error("a proof is not hex");
  return Buffer.from(hexToBytes(proof));
}
