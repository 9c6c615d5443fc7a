import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

/** A text nobody can read without the key that `keyId` names: 12 bytes of nonce, 16 of tag, then the cipher text. */
export type Sealed = { keyId: string; sealed: Buffer };

/** Encrypts what rests in the database (AES-256-GCM, NIST SP 800-38D). */
export type Sealer = {
  /** Seals with the newest key. `context` (the row's id) is authenticated, so that a sealed text fits its own row only. */
  seal(text: string, context: string): Sealed;
  /** Throws when the key is no longer given, the text was changed, or it belongs to another row. */
  open(sealed: Sealed, context: string): string;
};

export type DataKey = { id: string; key: Buffer };

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** @param keys at least one; the first seals, the others only open what was sealed before they were replaced */
export function createSealer(keys: readonly [DataKey, ...DataKey[]]): Sealer {
  const [newest] = keys;
  return {
    seal(text, context) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", newest.key, nonce).setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return { keyId: newest.id, sealed: Buffer.concat([nonce, cipher.getAuthTag(), body]) };
    },
    open({ keyId, sealed }, context) {
      const key = keys.find(({ id }) => id === keyId)?.key;
      if (!key) throw new Error(`the data key ${keyId} is not among DATA_KEYS`);
      const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(context))
        .setAuthTag(sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      return decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
    },
  };
}
