import { validateResultFormat } from "../../chains/solana/compare-transaction.ts";
import { readSolanaRow } from "../../db/chain-families.ts";
import type { ResultCheck, ResultReader } from "../wallet-driver.ts";

/** Reads what wallets on Solana return: the signed transaction in base64. */
export const solanaResults: ResultReader = {
  listChecks: () => [checkTransaction],
  // Money that is found is final already.
  canStillRelay: () => false,
  readSigned: (option, { proof }) => ({ ...readSolanaRow(option), proof }),
  toSignedMembers: ({ proof }, verified) => {
    const last_valid_height = verified?.lastValidHeight;
    if (last_valid_height === undefined) throw new Error("a verified transaction has no last valid block height");
    return { signature: Buffer.from(proof, "base64"), last_valid_height };
  },
};

const checkTransaction: ResultCheck = (result) =>
  typeof result === "string" ? validateResultFormat(result) : "expected the signed transaction in base64";
