import { expect, test } from "vitest";
import { createSealer } from "../../../ops/sealer.ts";

const key = (id: string, fill: number) => ({ id, key: Buffer.alloc(32, fill) });
const sealer = createSealer([key("new", 1), key("old", 2)]);

test("an encrypted value can be decrypted, and the ciphertext differs each time", () => {
  const [one, two] = [sealer.seal("grüße", "row_1"), sealer.seal("grüße", "row_1")];
  expect(one.keyId).toBe("new");
  expect(one.sealed.equals(two.sealed)).toBe(false);
  expect(sealer.open(one, "row_1")).toBe("grüße");
  expect(one.sealed.includes("gr")).toBe(false);
});

test("a value encrypted with an older key is decrypted with that key", () => {
  const before = createSealer([key("old", 2)]).seal("x", "row_1");
  expect(sealer.open(before, "row_1")).toBe("x");
});

test("a ciphertext that was altered, belongs to another row or used another key is not decrypted", () => {
  const sealed = sealer.seal("x", "row_1");
  expect(() => sealer.open(sealed, "row_2")).toThrow();
  for (let at = 0; at < sealed.sealed.length; at += 1) {
    const changed = Buffer.from(sealed.sealed);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(() => sealer.open({ ...sealed, sealed: changed }, "row_1")).toThrow();
  }
  expect(() => createSealer([key("new", 3)]).open(sealed, "row_1")).toThrow();
  expect(() => createSealer([key("other", 1)]).open(sealed, "row_1")).toThrow(
    "the data key new is not among DATA_KEYS",
  );
});
