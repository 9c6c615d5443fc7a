import { type Hex, keccak256, serializeTransaction } from "viem";
import { ChainFault } from "../faults.ts";
import { addressOfKey, joinSignature, type SignatureParts, signWithKey } from "./signature.ts";

/** A transaction of a lane before it is signed (EIP-1559). Fees in wei per gas. */
export type UnsignedTransaction = {
  chainId: number;
  nonce: number;
  to: Hex;
  data: Hex;
  gas: bigint;
  maxFeePerGas: bigint;
  maxPriorityFeePerGas: bigint;
};

/** Whoever holds a key: it signs and never shows it. `address` is in lower case. */
export type Signer = {
  address: Hex;
  /** The signed transaction's bytes, ready to be sent. */
  signTransaction(transaction: UnsignedTransaction): Promise<Hex>;
  /** A 65-byte signature over an EIP-712 digest. */
  signDigest(digest: Hex): Promise<Hex>;
};

/** A signer over a private key in memory. Throws ChainFault `wrong_key` when it is another address's key. */
export function createLocalSigner(address: string, key: Hex): Signer {
  if (addressOfKey(key) !== address.toLowerCase())
    throw new ChainFault("wrong_key", { detail: `expected the key of ${address}` });
  return {
    address: address.toLowerCase() as Hex,
    signTransaction: async (transaction) => {
      const unsigned = { type: "eip1559" as const, value: 0n, ...transaction };
      return serializeTransaction(
        unsigned,
        toViemSignature(signWithKey(keccak256(serializeTransaction(unsigned)), key)),
      );
    },
    signDigest: async (digest) => joinSignature(signWithKey(digest, key)),
  };
}

function toViemSignature({ r, s, v }: SignatureParts) {
  return { r, s, yParity: v - 27 };
}
