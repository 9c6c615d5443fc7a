import { expect, test } from "vitest";
import { createDecrypt, createEncrypt, newEncryptionKeys, parseEncryptionKey } from "../../../runtime/encryption.ts";

const makeKeys = async (id: string) => {
  const { publicKey, privateKey } = await newEncryptionKeys(id);
  const [toEncrypt, toDecrypt] = [parseEncryptionKey(publicKey), parseEncryptionKey(privateKey)];
  if (!toEncrypt || !toDecrypt) throw new Error("a new key cannot be parsed");
  return { publicKey: toEncrypt, privateKey: toDecrypt };
};
const [newer, older] = [await makeKeys("new"), await makeKeys("old")];
const encrypt = createEncrypt(newer.publicKey);
const decrypt = createDecrypt([newer.privateKey, older.privateKey]);

test("a text is decrypted with the private key, and its ciphertext differs each time", async () => {
  const [one, two] = [await encrypt("grüße", "row_1"), await encrypt("grüße", "row_1")];
  expect(one.keyId).toBe("new");
  expect(one.ciphertext.equals(two.ciphertext)).toBe(false);
  expect(one.ciphertext.includes("gr")).toBe(false);
  expect(await decrypt(one, "row_1")).toBe("grüße");
});

test("a text that was encrypted before a rotation is decrypted with the older key", async () => {
  const before = await createEncrypt(older.publicKey)("x", "row_1");
  expect(await decrypt(before, "row_1")).toBe("x");
});

test("the public key does not decrypt", async () => {
  const encrypted = await encrypt("x", "row_1");
  await expect(createDecrypt([newer.publicKey])(encrypted, "row_1")).rejects.toThrow();
});

test("a ciphertext that was changed, belongs to another row or was made for another key is not decrypted", async () => {
  const encrypted = await encrypt("x", "row_1");
  await expect(decrypt(encrypted, "row_2")).rejects.toThrow();
  for (let at = 0; at < encrypted.ciphertext.length; at += 1) {
    const changed = Buffer.from(encrypted.ciphertext);
    changed[at] = (changed[at] ?? 0) ^ 1;
    await expect(decrypt({ ...encrypted, ciphertext: changed }, "row_1")).rejects.toThrow();
  }
  const another = { ...older.privateKey, id: "new" };
  await expect(createDecrypt([another])(encrypted, "row_1")).rejects.toThrow();
  await expect(createDecrypt([older.privateKey])(encrypted, "row_1")).rejects.toThrow(
    "the private key new is not configured",
  );
});
