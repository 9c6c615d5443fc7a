import { type Hex, serializeTransaction } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { ChainFault } from "../faults.ts";

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
  const account = privateKeyToAccount(key);
  if (account.address.toLowerCase() !== address.toLowerCase())
    throw new ChainFault("wrong_key", { detail: `expected the key of ${address}` });
  return {
    address: address.toLowerCase() as Hex,
    signTransaction: (transaction) =>
      account.signTransaction({ type: "eip1559", value: 0n, ...transaction }, { serializer: serializeTransaction }),
    signDigest: (hash) => account.sign({ hash }),
  };
}
