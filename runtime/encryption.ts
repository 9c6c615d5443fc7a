import { Aes256Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";

/** A text that was encrypted to the key `keyId`: 32 bytes of the encapsulated key, then the ciphertext with its tag. */
type Encrypted = { keyId: string; ciphertext: Buffer };

/** Encrypts a text. `context` (such as the row's id) is authenticated, which binds the ciphertext to its row. */
export type Encrypt = (text: string, context: string) => Promise<Encrypted>;

/** Decrypts. Rejects when the private key is not configured, the ciphertext was changed, or it belongs to another row. */
export type Decrypt = (encrypted: Encrypted, context: string) => Promise<string>;

/** One half of a key pair: 32 bytes of X25519. Both halves have the same `id`. */
export type EncryptionKey = { id: string; bytes: Buffer };

const KEY_BYTES = 32;

/** HPKE (RFC 9180) in its base mode: the public key encrypts, and only the private key decrypts. */
const suite = new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes256Gcm() });

const toBytes = (data: Uint8Array): ArrayBuffer => new Uint8Array(data).buffer;
const toContext = (context: string): ArrayBuffer => toBytes(Buffer.from(context));

/** Returns a function that encrypts to a public key, and cannot decrypt. */
export function createEncrypt({ id, bytes }: EncryptionKey): Encrypt {
  return async (text, context) => {
    const recipientPublicKey = await suite.kem.importKey("raw", toBytes(bytes), true);
    const { enc, ct } = await suite.seal({ recipientPublicKey }, toBytes(Buffer.from(text)), toContext(context));
    return { keyId: id, ciphertext: Buffer.concat([Buffer.from(enc), Buffer.from(ct)]) };
  };
}

/** Returns a function that decrypts with the private key that the ciphertext names. */
export function createDecrypt(keys: readonly EncryptionKey[]): Decrypt {
  return async ({ keyId, ciphertext }, context) => {
    const key = keys.find(({ id }) => id === keyId);
    if (!key) throw new Error(`the private key ${keyId} is not configured`);
    const recipientKey = await suite.kem.importKey("raw", toBytes(key.bytes), false);
    const [enc, body] = [ciphertext.subarray(0, KEY_BYTES), ciphertext.subarray(KEY_BYTES)];
    const text = await suite.open({ recipientKey, enc: toBytes(enc) }, toBytes(body), toContext(context));
    return Buffer.from(text).toString();
  };
}

/** Generates a key pair. Returns both halves in the form that the configuration reads. */
export async function newEncryptionKeys(id: string): Promise<{ publicKey: string; privateKey: string }> {
  const pair = await suite.kem.generateKeyPair();
  const write = (bytes: ArrayBuffer) => `${id}:${Buffer.from(bytes).toString("base64")}`;
  return {
    publicKey: write(await suite.kem.serializePublicKey(pair.publicKey)),
    privateKey: write(await suite.kem.serializePrivateKey(pair.privateKey)),
  };
}

export const isEncryptionKeyId = (text: string): boolean => /^[\w-]{1,32}$/.test(text);

/** Parses `id:key`, the key being 32 bytes in base64. Returns undefined for any other text. */
export function parseEncryptionKey(text: string): EncryptionKey | undefined {
  const [id = "", encoded = "", ...rest] = text.trim().split(":");
  const isKey = isEncryptionKeyId(id) && /^[A-Za-z0-9+/]{43}=$/.test(encoded) && rest.length === 0;
  return isKey ? { id, bytes: Buffer.from(encoded, "base64") } : undefined;
}
