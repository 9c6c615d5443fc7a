import { type Hex, hashMessage, hashTypedData, keccak256, type LocalAccount, serializeTransaction } from "viem";
import { toAccount } from "viem/accounts";
import { joinSignature, type SignatureParts } from "../signature.ts";

/**
 * A signer holds a key, signs with it and never exposes it. It has the shape of a viem account, so that any viem account
 * can sign for us. `address` is in lower case. A remote signer throws ChainFault `signer_unavailable` (transient) or
 * `signer_refused` (needs the operator).
 */
export type Signer = LocalAccount & { sign: NonNullable<LocalAccount["sign"]> };

/** Creates a signer from a function that signs 32-byte digests with a low s. */
export function createSigner(address: string, signDigest: (digest: Hex) => Promise<SignatureParts>): Signer {
  const sign = async (hash: Hex) => joinSignature(await signDigest(hash));
  const account = toAccount({
    address: address.toLowerCase() as Hex,
    sign: ({ hash }) => sign(hash),
    signMessage: ({ message }) => sign(hashMessage(message)),
    signTypedData: (definition) => sign(hashTypedData(definition as never)),
    signTransaction: async (transaction, options) => {
      const serialize = (options?.serializer ?? serializeTransaction) as typeof serializeTransaction;
      const { r, s, v } = await signDigest(keccak256(await serialize(transaction as never)));
      return serialize(transaction as never, { r, s, yParity: v - 27 });
    },
  });
  return account as Signer;
}
