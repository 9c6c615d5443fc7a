import { hexToBytes, isHex, size } from "viem";
import { unwrapSignature } from "../../chains/evm/account-code.ts";
import { readEvmRow } from "../../db/chain-families.ts";
import type { OptionRow } from "../../db/queries/payment-options.ts";
import type { ResultCheck, ResultReader } from "../wallet-driver.ts";

/**
 * Maximum length of a signature. Multisig wallets sign long ones; an undeployed wallet includes its deployment data.
 */
const LONGEST_BYTES = 8_000;
const KEY_SIGNATURE_BYTES = 65;

/** Reads what wallets on EVM chains return: signatures, and hashes of the transactions that they have sent. */
export const evmResults: ResultReader = {
  listChecks,
  // Only the payer's own transaction makes a push.
  canStillRelay: (kind) => kind !== "push",
  // A proof that should be hex and is not becomes empty, and no verification accepts that.
  readSigned: (option, { proof, permit }) => ({ ...readEvmRow(option), proof: isHex(proof) ? proof : "0x", permit }),
  toSignedMembers: ({ proof, permit }, verified) => ({
    signature: decodeProof(verified?.deployed && isHex(proof) ? unwrapSignature(proof).signature : proof),
    permit: permit && decodeProof(permit),
    smart_wallet: verified?.smartWallet === true,
    code_hash: verified?.codeHash || null,
  }),
};

function listChecks({ kind, allowance }: Pick<OptionRow, "kind" | "allowance">): readonly ResultCheck[] {
  if (kind === "push") return [checkTransaction];
  if (!allowance) return [checkSignature];
  if (allowance.by === "permit") return [checkSignature, checkSignature];
  return allowance.zeroAllowanceFirst
    ? [checkTransaction, checkTransaction, checkSignature]
    : [checkTransaction, checkSignature];
}

const checkTransaction: ResultCheck = (result) => {
  const what = "the transaction's hash";
  const bytes = sizeOf(result, what);
  if (typeof bytes === "string") return bytes;
  return bytes === 32 ? undefined : `expected ${what}, 32 bytes`;
};

const checkSignature: ResultCheck = (result) => {
  const what = "the signature";
  const bytes = sizeOf(result, what);
  if (typeof bytes === "string") return bytes;
  // No signature scheme has shorter signatures, and 32 bytes are likely a hash sent by mistake.
  if (bytes < KEY_SIGNATURE_BYTES) return `${what} is shorter than ${KEY_SIGNATURE_BYTES} bytes`;
  return bytes > LONGEST_BYTES ? `${what} is longer than ${LONGEST_BYTES} bytes` : undefined;
};

/** Returns the number of bytes of a hex string, or the error if it is none. */
function sizeOf(result: unknown, what: string): number | string {
  if (typeof result !== "string") return `expected ${what} as a hex string`;
  return isHex(result) && result.length % 2 === 0 ? size(result) : `${what} is not a hex string`;
}

/** Decodes a proof in hex to bytes. Throws when it is not hex. */
function decodeProof(proof: string): Buffer {
  if (!isHex(proof)) throw new Error("a proof is not hex");
  return Buffer.from(hexToBytes(proof));
}
