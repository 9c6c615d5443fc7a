import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

/** A text encrypted with the key that `keyId` names: 12 bytes of nonce, 16 bytes of tag, then the ciphertext. */
type Encrypted = { keyId: string; ciphertext: Buffer };

/** Encrypts values that are stored in the database (AES-256-GCM, NIST SP 800-38D). */
export type Encryption = {
  /** Encrypts with the newest key. `context` (the row's id) is authenticated, which binds the text to its row. */
  encrypt(text: string, context: string): Encrypted;
  /** Decrypts. Throws when the key is no longer configured, the text was changed, or it belongs to another row. */
  decrypt(ciphertext: Encrypted, context: string): string;
};

export type DataKey = { id: string; key: Buffer };

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** @param keys the first one encrypts; the others only decrypt texts from before they were replaced */
export function createEncryption(keys: readonly [DataKey, ...DataKey[]]): Encryption {
  const [newest] = keys;
  return {
    encrypt(text, context) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", newest.key, nonce).setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return { keyId: newest.id, ciphertext: Buffer.concat([nonce, cipher.getAuthTag(), body]) };
    },
    decrypt({ keyId, ciphertext }, context) {
      const key = keys.find(({ id }) => id === keyId)?.key;
      if (!key) throw new Error(`the data key ${keyId} is not among DATA_KEYS`);
      const decipher = createDecipheriv("aes-256-gcm", key, ciphertext.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(context))
        .setAuthTag(ciphertext.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      return decipher.update(ciphertext.subarray(NONCE_BYTES + TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
    },
  };
}
