import { type Hex, hashMessage, hashTypedData, keccak256, type LocalAccount, serializeTransaction } from "viem";
import { toAccount } from "viem/accounts";
import { joinSignature, type SignatureParts } from "../signature.ts";

/**
 * Whoever holds a key: it signs and never shows it. This is viem's account shape, so that anything which signs for viem
 * can sign for us. `address` is in lower case. What signs elsewhere throws ChainFault `signer_unavailable` (passing) or
 * `signer_refused` (for a person).
 */
export type Signer = LocalAccount & { sign: NonNullable<LocalAccount["sign"]> };

/** A signer over something that signs 32-byte digests, with a low s. */
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
