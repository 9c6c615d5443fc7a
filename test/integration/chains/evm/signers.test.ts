import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  hexToBytes,
  keccak256,
  parseTransaction,
  recoverAddress,
  recoverMessageAddress,
  recoverTransactionAddress,
  recoverTypedDataAddress,
  toHex,
} from "viem";
import { describe, expect, test } from "vitest";
import { validateSignature } from "../../../../chains/evm/signature.ts";
import { openSigner } from "../../../../chains/evm/signers/open-evm-keys.ts";
import { addressOfPublicKey, parseDerSignature } from "../../../../chains/evm/signers/remote-signer.ts";
import { decryptKeystore, encryptKeystore } from "../../../../chains/signers/keystore-file.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { makeScratch } from "../../../../local/scratch-folder.ts";
import { type KeySource, readKey, readSecret, readText } from "../../../../runtime/networks/read-networks.ts";
import { otherCurve, setCloudCredentials, startKms } from "../../../support/fake-kms.ts";

const key = newKey();
const kms = await startKms(key.privateKey);
await setCloudCredentials(kms.url);
const folder = await makeScratch("signers");
const keystore = join(folder, "keystore.json");
const secret = { secret: hexToBytes(key.privateKey), address: key.address };
await writeFile(keystore, await encryptKeystore(secret, "correct horse", 1_024));
Object.assign(process.env, { SIGNER_KEY: key.privateKey, SIGNER_PASSWORD: "correct horse", WRONG_PASSWORD: "battery" });

const readers = { readKey, readSecret, readText };
const open = (source: KeySource, address: string = key.address) => openSigner(address, source, readers);
const name = "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1";
const aws: KeySource = { awsKms: { keyId: "alias/lane", region: "eu-central-1", endpoint: kms.url } };
const google: KeySource = { googleKms: { name, endpoint: kms.url } };
const sources: [string, KeySource][] = [
  ["a local key", { env: "SIGNER_KEY" }],
  ["an encrypted keystore file", { keystore, password: { env: "SIGNER_PASSWORD" } }],
  ["a key in AWS KMS", aws],
  ["a key in Google Cloud KMS", google],
];

/** Every kind of signer passes these tests. */
describe.each(sources)("%s", (_what, source) => {
  test("the signer has the address of the networks file, in lower case", async () => {
    expect((await open(source)).address).toBe(key.address.toLowerCase());
  });

  test("signs digests with a low s and v of 27 or 28, whatever its service returns", async () => {
    const signer = await open(source);
    for (let index = 0; index < 6; index += 1) {
      const hash = keccak256(toHex(`digest ${index}`));
      const signature = await signer.sign({ hash });
      expect(validateSignature(signature)).toBeUndefined();
      expect(["1b", "1c"]).toContain(signature.slice(-2));
      expect(await recoverAddress({ hash, signature })).toBe(key.address);
    }
  });

  test("signs transactions, typed data and messages that viem verifies", async () => {
    const signer = await open(source);
    const fees = { maxFeePerGas: 9n, maxPriorityFeePerGas: 1n };
    const transaction = { type: "eip1559", chainId: 1, nonce: 7, to: key.address, data: "0x01", gas: 21_000n } as const;
    const serializedTransaction = (await signer.signTransaction({ ...transaction, ...fees })) as `0x02${string}`;
    expect(parseTransaction(serializedTransaction)).toMatchObject({ chainId: 1, nonce: 7, maxFeePerGas: 9n });
    expect(await recoverTransactionAddress({ serializedTransaction })).toBe(key.address);
    const typed = {
      domain: { name: "test", chainId: 1 },
      types: { Mail: [{ name: "text", type: "string" }] },
      primaryType: "Mail",
      message: { text: "hello" },
    } as const;
    expect(await recoverTypedDataAddress({ ...typed, signature: await signer.signTypedData(typed) })).toBe(key.address);
    const signature = await signer.signMessage({ message: "hello" });
    expect(await recoverMessageAddress({ message: "hello", signature })).toBe(key.address);
  });

  test("a key of another address stops the process with an error that names the expected address", async () => {
    const other = newKey().address;
    const message = expect.stringContaining(other);
    await expect(open(source, other)).rejects.toMatchObject({ code: "wrong_key", message });
  });
});

describe.each([
  ["AWS KMS", aws, "ThrottlingException", 400],
  ["Google Cloud KMS", google, "RESOURCE_EXHAUSTED", 429],
] as const)("%s", (_what, source, throttled, status) => {
  const digest = { hash: keccak256(toHex("digest")) };
  const many = <T>(value: T) => Array.from({ length: 10 }, () => value);

  test("causes a transient error while it throttles or fails, and signs afterwards", async () => {
    const signer = await open(source);
    for (const error of [
      { status, name: throttled },
      { status: 500, name: "InternalException" },
    ]) {
      kms.failNext(many(error));
      await expect(signer.sign(digest)).rejects.toMatchObject({ code: "signer_unavailable", transient: true });
      kms.failNext([]);
    }
    expect(await recoverAddress({ ...digest, signature: await signer.sign(digest) })).toBe(key.address);
  });

  test("causes a transient error within seconds if it does not answer", async () => {
    const signer = await open(source);
    kms.failNext(many({ status: 0, name: "silent" }));
    await expect(signer.sign(digest)).rejects.toMatchObject({ code: "signer_unavailable", transient: true });
    kms.failNext([]);
  });

  test("causes a permanent error if it denies access", async () => {
    const signer = await open(source);
    kms.failNext(many({ status: 403, name: "AccessDeniedException" }));
    await expect(signer.sign(digest)).rejects.toMatchObject({ code: "signer_refused", transient: false });
    kms.failNext([]);
  });
});

test("the error of a wrong keystore password contains neither the password nor the keystore", async () => {
  const error = await open({ keystore, password: { env: "WRONG_PASSWORD" } }).catch((cause: Error) => cause);
  expect(error).toMatchObject({
    code: "wrong_key",
    message: expect.stringContaining("the password of the keystore is wrong"),
  });
  expect(String(error)).not.toMatch(/horse|battery/);
});

test("the example of the keystore specification is decrypted", async () => {
  const example = {
    crypto: {
      cipher: "aes-128-ctr",
      cipherparams: { iv: "6087dab2f9fdbbfaddc31a909735c1e6" },
      ciphertext: "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
      kdf: "pbkdf2",
      kdfparams: {
        c: 262_144,
        dklen: 32,
        prf: "hmac-sha256",
        salt: "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd",
      },
      mac: "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2",
    },
    version: 3,
  };
  const decrypted = await decryptKeystore(JSON.stringify(example), "testpassword");
  expect(decrypted.toString("hex")).toBe("7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d");
});

test.each([
  ["trailing bytes", "3006020101020102ff"],
  ["a wrong length", "3007020101020102"],
  ["a member that is not an integer", "3006030101020102"],
  ["a negative integer", "3006020181020102"],
  ["an unneeded leading zero", "300702020001020102"],
  ["an r of zero", "3006020100020102"],
  ["no bytes", ""],
])("a DER signature with %s is refused", (_what, hex) => {
  expect(() => parseDerSignature(Buffer.from(hex, "hex"))).toThrow(expect.objectContaining({ code: "signer_refused" }));
});

test("a public key on another curve and a missing public key are refused", () => {
  for (const encoded of [otherCurve(), Buffer.alloc(0), "no key"])
    expect(() => addressOfPublicKey(encoded)).toThrow(expect.objectContaining({ code: "wrong_key" }));
});
