import { expect, test } from "vitest";
import { createEncryption } from "../../../runtime/encryption.ts";

const key = (id: string, fill: number) => ({ id, key: Buffer.alloc(32, fill) });
const encryption = createEncryption([key("new", 1), key("old", 2)]);

test("an encrypted value can be decrypted, and the ciphertext differs each time", () => {
  const [one, two] = [encryption.encrypt("grüße", "row_1"), encryption.encrypt("grüße", "row_1")];
  expect(one.keyId).toBe("new");
  expect(one.ciphertext.equals(two.ciphertext)).toBe(false);
  expect(encryption.decrypt(one, "row_1")).toBe("grüße");
  expect(one.ciphertext.includes("gr")).toBe(false);
});

test("a value encrypted with an older key is decrypted with that key", () => {
  const before = createEncryption([key("old", 2)]).encrypt("x", "row_1");
  expect(encryption.decrypt(before, "row_1")).toBe("x");
});

test("a ciphertext that was altered, belongs to another row or used another key is not decrypted", () => {
  const ciphertext = encryption.encrypt("x", "row_1");
  expect(() => encryption.decrypt(ciphertext, "row_2")).toThrow();
  for (let at = 0; at < ciphertext.ciphertext.length; at += 1) {
    const changed = Buffer.from(ciphertext.ciphertext);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(() => encryption.decrypt({ ...ciphertext, ciphertext: changed }, "row_1")).toThrow();
  }
  expect(() => createEncryption([key("new", 3)]).decrypt(ciphertext, "row_1")).toThrow();
  expect(() => createEncryption([key("other", 1)]).decrypt(ciphertext, "row_1")).toThrow(
    "the data key new is not among DATA_KEYS",
  );
});
