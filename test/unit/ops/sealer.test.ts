import { expect, test } from "vitest";
import { createSealer } from "../../../ops/sealer.ts";

const key = (id: string, fill: number) => ({ id, key: Buffer.alloc(32, fill) });
const sealer = createSealer([key("new", 1), key("old", 2)]);

test("what is sealed can be opened, and looks different each time", () => {
  const [one, two] = [sealer.seal("grüße", "row_1"), sealer.seal("grüße", "row_1")];
  expect(one.keyId).toBe("new");
  expect(one.sealed.equals(two.sealed)).toBe(false);
  expect(sealer.open(one, "row_1")).toBe("grüße");
  expect(one.sealed.includes("gr")).toBe(false);
});

test("what was sealed with a key that is no longer the first is opened with it", () => {
  const before = createSealer([key("old", 2)]).seal("x", "row_1");
  expect(sealer.open(before, "row_1")).toBe("x");
});

test("what was changed, belongs to another row, or was sealed with another key is not opened", () => {
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
