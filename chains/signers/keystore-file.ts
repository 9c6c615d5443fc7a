import {
  createCipheriv,
  createDecipheriv,
  pbkdf2,
  randomBytes,
  randomUUID,
  scrypt,
  timingSafeEqual,
} from "node:crypto";
import { promisify } from "node:util";
import { z } from "zod";
import { ChainError } from "../errors.ts";
import { keccak256 } from "../keccak256.ts";

const hex = z.string().regex(/^([0-9a-fA-F]{2})+$/);
const count = z.number().int().min(1);
const powerOfTwo = count.max(2 ** 22).refine((n) => Number.isInteger(Math.log2(n)));

/**
 * Web3 Secret Storage, version 3: the format of Geth, Foundry and most wallets. It encrypts 32 bytes, which are the key of an
 * EVM account or the seed of a Solana keypair.
 */
const Keystore = z.object({
  version: z.literal(3),
  crypto: z
    .object({
      cipher: z.literal("aes-128-ctr"),
      ciphertext: hex,
      cipherparams: z.object({ iv: hex }),
      mac: hex.length(64),
    })
    .and(
      z.discriminatedUnion("kdf", [
        z.object({
          kdf: z.literal("scrypt"),
          kdfparams: z.object({ dklen: z.literal(32), n: powerOfTwo, r: count.max(64), p: count.max(64), salt: hex }),
        }),
        z.object({
          kdf: z.literal("pbkdf2"),
          kdfparams: z.object({
            dklen: z.literal(32),
            c: count.max(10_000_000),
            prf: z.literal("hmac-sha256"),
            salt: hex,
          }),
        }),
      ]),
    ),
});
type Crypto = z.infer<typeof Keystore>["crypto"];

/** Length of a private key of secp256k1 and of a seed of Ed25519, in bytes. */
const KEY_BYTES = 32;

/**
 * Decrypts the 32 secret bytes of a keystore file. Throws ChainError `wrong_key` if the text is not a keystore or the
 * password is wrong. The error contains neither.
 */
export async function decryptKeystore(text: string, password: string): Promise<Buffer> {
  const parsed = Keystore.safeParse(parse(text));
  if (!parsed.success)
    throw new ChainError("wrong_key", { detail: "the file is not a version 3 keystore (Web3 Secret Storage)" });
  const { crypto } = parsed.data;
  const derived = await derive(crypto, password);
  const ciphertext = Buffer.from(crypto.ciphertext, "hex");
  if (!timingSafeEqual(macOf(derived, ciphertext), Buffer.from(crypto.mac, "hex")))
    throw new ChainError("wrong_key", { detail: "the password of the keystore is wrong" });
  if (ciphertext.length !== KEY_BYTES)
    throw new ChainError("wrong_key", { detail: `the keystore does not hold a key of ${KEY_BYTES} bytes` });
  const decipher = createDecipheriv("aes-128-ctr", derived.subarray(0, 16), Buffer.from(crypto.cipherparams.iv, "hex"));
  return Buffer.concat([decipher.update(ciphertext), decipher.final()]);
}

/** scrypt parameters of Geth. Deriving a key takes about a second. */
const SCRYPT = { n: 2 ** 18, r: 8, p: 1, dklen: 32 } as const;

/** Encrypts the 32 secret bytes of an address and returns the text of a keystore file. `n` is the scrypt cost. */
export async function encryptKeystore(
  { secret, address }: { secret: Uint8Array; address: string },
  password: string,
  n: number = SCRYPT.n,
): Promise<string> {
  const [salt, iv] = [randomBytes(32), randomBytes(16)];
  const kdfparams = { ...SCRYPT, n, salt: salt.toString("hex") };
  const derived = await derive({ kdf: "scrypt", kdfparams }, password);
  const cipher = createCipheriv("aes-128-ctr", derived.subarray(0, 16), iv);
  const ciphertext = Buffer.concat([cipher.update(secret), cipher.final()]);
  const crypto = {
    cipher: "aes-128-ctr",
    ciphertext: ciphertext.toString("hex"),
    cipherparams: { iv: iv.toString("hex") },
    kdf: "scrypt",
    kdfparams,
    mac: macOf(derived, ciphertext).toString("hex"),
  };
  return `${JSON.stringify({ version: 3, id: randomUUID(), address, crypto }, null, 2)}\n`;
}

async function derive(crypto: Pick<Crypto, "kdf" | "kdfparams">, password: string): Promise<Buffer> {
  const { kdfparams } = crypto;
  const salt = Buffer.from(kdfparams.salt, "hex");
  if ("c" in kdfparams) return promisify(pbkdf2)(password, salt, kdfparams.c, kdfparams.dklen, "sha256");
  const { n: N, r, p, dklen } = kdfparams;
  const run = promisify<string, Buffer, number, { N: number; r: number; p: number; maxmem: number }, Buffer>(scrypt);
  return run(password, salt, dklen, { N, r, p, maxmem: 256 * N * r });
}

/** Returns Keccak-256 of the second half of the derived key and the ciphertext. */
function macOf(derived: Buffer, ciphertext: Buffer): Buffer {
  return Buffer.from(keccak256(Buffer.concat([derived.subarray(16, 32), ciphertext])).slice(2), "hex");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
