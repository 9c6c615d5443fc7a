import { describe, expect, test } from "vitest";
import { keepLinked } from "../../../../transfers/evm/read-blocks.ts";
import { isProof } from "../../../../transfers/match-movements.ts";

describe("blocks that were read in parallel", () => {
  const block = (hash: string, parentHash: string) => ({ hash, parentHash });

  test("blocks that were read in parallel are used up to the first block that does not link to its parent, starting at the cursor", () => {
    const blocks = [block("b", "a"), block("c", "b"), block("d", "x"), block("e", "d")];
    expect(keepLinked("a", blocks).map(({ hash }) => hash)).toEqual(["b", "c"]);
  });

  test("blocks that were read in parallel are not used when the first block does not link to the cursor: a reorg", () => {
    expect(keepLinked("a2", [block("b", "a"), block("c", "b")])).toEqual([]);
  });

  test("blocks that were read in parallel are all used when all are linked", () => {
    const blocks = [block("b", "a"), block("c", "b")];
    expect(keepLinked("a", blocks)).toEqual(blocks);
    expect(keepLinked("a", [])).toEqual([]);
  });
});

describe("a log matches a transfer", () => {
  const transfer = { token: "0x70", payer: "0xaa", receiver: "0xbb", amount: 5n, authorization_nonce: "0x0c" };
  const log = { token: "0x70", payer: "0xaa", receiver: "0xbb", amount: 5n, authorizationNonce: "0x0c" };

  test("when token, payer, receiver, amount and nonce are equal", () => {
    expect(isProof(log as never, transfer)).toBe(true);
  });

  test.each([{ token: "0x71" }, { payer: "0xab" }, { receiver: "0xbc" }, { amount: 4n }, { authorizationNonce: null }])(
    "only when all of them are equal: %o",
    (other) => {
      expect(isProof({ ...log, ...other } as never, transfer)).toBe(false);
    },
  );
});
