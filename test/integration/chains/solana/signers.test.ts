import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { encryptKeystore } from "../../../../chains/signers/keystore-file.ts";
import { openSeed, verifySignature } from "../../../../chains/solana/ed25519-keys.ts";
import { openSolanaKey } from "../../../../chains/solana/open-solana-keys.ts";
import { addressOfPublicKey } from "../../../../chains/solana/solana-signer.ts";
import { makeScratch } from "../../../../local/scratch-folder.ts";
import { newSolanaKey } from "../../../../local/solana-client.ts";
import { type KeySource, readSecret, readText } from "../../../../runtime/networks/read-networks.ts";
import { otherCurve, setCloudCredentials, startEd25519Kms } from "../../../support/fake-kms.ts";

const plain = newSolanaKey();
const seed = randomBytes(32);
const { address } = openSeed(seed);
const kms = await startEd25519Kms(seed);
await setCloudCredentials(kms.url);
const folder = await makeScratch("solana-signers");
const keystore = join(folder, "keystore.json");
await writeFile(keystore, await encryptKeystore({ secret: seed, address }, "correct horse", 1_024));
Object.assign(process.env, {
  SOLANA_KEY: plain.secretKey,
  SIGNER_PASSWORD: "correct horse",
  WRONG_PASSWORD: "battery",
});

const open = (source: KeySource, of: string) => openSolanaKey({ address: of, key: source }, { readSecret, readText });
const name = "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1";
const aws: KeySource = { awsKms: { keyId: "alias/treasury", region: "eu-central-1", endpoint: kms.url } };
const google: KeySource = { googleKms: { name, endpoint: kms.url } };
const sources: [string, KeySource, string][] = [
  ["a local key", { env: "SOLANA_KEY" }, plain.address],
  ["an encrypted keystore file", { keystore, password: { env: "SIGNER_PASSWORD" } }, address],
  ["a key in AWS KMS", aws, address],
  ["a key in Google Cloud KMS", google, address],
];

/** Every kind of signer passes these tests. */
describe.each(sources)("%s", (_what, source, of) => {
  test("the signer has the address of the networks file", async () => {
    expect((await open(source, of)).address).toBe(of);
  });

  test("signs messages of every length that a transaction may have, and nothing but the message", async () => {
    const signer = await open(source, of);
    for (const length of [1, 32, 64, 1_232]) {
      const message = randomBytes(length);
      const signature = await signer.sign(message);
      expect(signature).toHaveLength(64);
      expect(verifySignature(of, message, signature)).toBe(true);
    }
  });

  test("a key of another address stops the process with an error that names the expected address", async () => {
    const other = newSolanaKey().address;
    const message = expect.stringContaining(other);
    await expect(open(source, other)).rejects.toMatchObject({ code: "wrong_key", message });
  });
});

test("a key in an unknown form stops the process with an error that names the forms and shows no part of the key", async () => {
  const { secretKey, address } = newSolanaKey();
  const readers = { readSecret: () => `${secretKey}1`, readText: () => "" };
  const error = await openSolanaKey({ address, key: { env: "KEY" } }, readers).then(String, String);
  expect(error).toContain("expected 64 bytes in base58, or the array of 64 numbers that solana-keygen writes");
  expect(error).not.toContain(secretKey.slice(5, 30));
});

describe.each([
  ["AWS KMS", aws, "ThrottlingException", 400],
  ["Google Cloud KMS", google, "RESOURCE_EXHAUSTED", 429],
] as const)("%s", (_what, source, throttled, status) => {
  const message = Buffer.from("a message");
  const many = <T>(value: T) => Array.from({ length: 10 }, () => value);

  test("causes a transient error while it throttles or fails, and signs afterwards", async () => {
    const signer = await open(source, address);
    for (const error of [
      { status, name: throttled },
      { status: 500, name: "InternalException" },
    ]) {
      kms.failNext(many(error));
      await expect(signer.sign(message)).rejects.toMatchObject({ code: "signer_unavailable", transient: true });
      kms.failNext([]);
    }
    expect(verifySignature(address, message, await signer.sign(message))).toBe(true);
  });

  test("causes a permanent error if it denies access", async () => {
    const signer = await open(source, address);
    kms.failNext(many({ status: 403, name: "AccessDeniedException" }));
    await expect(signer.sign(message)).rejects.toMatchObject({ code: "signer_refused", transient: false });
    kms.failNext([]);
  });
});

test("a signature that the service made with another key is never used", async () => {
  const { url: endpoint } = await startEd25519Kms(seed, { signsWith: randomBytes(32) });
  const signer = await open({ awsKms: { keyId: "alias/treasury", region: "eu-central-1", endpoint } }, address);
  await expect(signer.sign(Buffer.from("a message"))).rejects.toMatchObject({ code: "signer_refused" });
});

test("a public key of another kind and a missing public key are refused", () => {
  for (const encoded of [otherCurve(), Buffer.alloc(0), "no key"])
    expect(() => addressOfPublicKey(encoded)).toThrow(expect.objectContaining({ code: "wrong_key" }));
});

test("the error of a wrong keystore password contains neither the password nor the keystore", async () => {
  const error = await open({ keystore, password: { env: "WRONG_PASSWORD" } }, address).catch((cause: Error) => cause);
  expect(error).toMatchObject({ code: "wrong_key", message: expect.stringContaining("password of the keystore") });
  expect(String(error)).not.toMatch(/horse|battery/);
});
