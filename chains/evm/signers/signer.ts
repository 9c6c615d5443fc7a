import { type Hex, hashMessage, hashTypedData, type LocalAccount, serializeTransaction } from "viem";
import { toAccount } from "viem/accounts";
import { keccak256 } from "../../keccak256.ts";
import { lowerCaseHex } from "../hex.ts";
import { joinSignature, type SignatureParts } from "../signature.ts";

/**
 * A signer holds a key, signs with it and never exposes it. It has the shape of a viem account, so that any viem account
 * can sign for us. `address` is in lower case. A remote signer throws ChainError `signer_unavailable` (transient) or
 * `signer_refused` (needs the operator).
 */
export type Signer = LocalAccount & { sign: NonNullable<LocalAccount["sign"]> };

/** Creates a signer from a function that signs 32-byte digests with a low s. */
export function createSigner(address: string, signDigest: (digest: Hex) => Promise<SignatureParts>): Signer {
  const sign = async (hash: Hex) => joinSignature(await signDigest(hash));
  const account = toAccount({
    address: lowerCaseHex(address),
    signMessage: ({ message }) => sign(hashMessage(message)),
    signTypedData: (definition) => sign(hashTypedData(definition)),
    signTransaction: async (transaction, options) => {
      const serialize = options?.serializer ?? serializeTransaction;
      const bytes = Buffer.from((await serialize(transaction)).slice(2), "hex");
      const { r, s, v } = await signDigest(keccak256(bytes));
      // A transaction without a type contains v, any other one yParity.
      return serialize(transaction, { r, s, v: BigInt(v), yParity: v - 27 });
    },
  });
  return { ...account, sign: ({ hash }) => sign(hash) };
}
