import { describe, expect, test } from "vitest";
import { isProof, settleNonces } from "../../../transfers/proof.ts";
import { keepLinked } from "../../../transfers/reading.ts";

describe("blocks that were read side by side", () => {
  const block = (hash: string, parentHash: string) => ({ hash, parentHash });

  test("count as far as each stands on the one before, the first on the cursor", () => {
    const blocks = [block("b", "a"), block("c", "b"), block("d", "x"), block("e", "d")];
    expect(keepLinked("a", blocks).map(({ hash }) => hash)).toEqual(["b", "c"]);
  });

  test("count not at all when the first stands on something else: a reorg", () => {
    expect(keepLinked("a2", [block("b", "a"), block("c", "b")])).toEqual([]);
  });

  test("all count when all are linked", () => {
    const blocks = [block("b", "a"), block("c", "b")];
    expect(keepLinked("a", blocks)).toEqual(blocks);
    expect(keepLinked("a", [])).toEqual([]);
  });
});

describe("a log proves a transfer", () => {
  const transfer = { token: "0x70", payer: "0xaa", receiver: "0xbb", amount: 5n, authorization_nonce: "0x0c" };
  const log = { token: "0x70", payer: "0xaa", receiver: "0xbb", amount: 5n, authorizationNonce: "0x0c" };

  test("when token, payer, receiver, amount and nonce are its own", () => {
    expect(isProof(log as never, transfer)).toBe(true);
  });

  test.each([{ token: "0x71" }, { payer: "0xab" }, { receiver: "0xbc" }, { amount: 4n }, { authorizationNonce: null }])(
    "and not when one of them differs: %o",
    (other) => {
      expect(isProof({ ...log, ...other } as never, transfer)).toBe(false);
    },
  );
});

describe("of several movements that an authorization may have made", () => {
  const transfer = { token: "0x70", payer: "0xaa", receiver: "0xbb", amount: 5n, authorization_nonce: "0x0c" };
  const movement = (amount: bigint, authorizationNonce: string | null, more: object = {}) =>
    ({
      token: "0x70",
      payer: "0xaa",
      receiver: "0xbb",
      amount,
      authorizationNonce,
      usedNonces: ["0x0c"],
      ...more,
    }) as never;
  const noncesOf = (seen: { authorizationNonce: string | null }[]) => seen.map((one) => one.authorizationNonce);

  test("the one with the transfer's receiver and amount is its own, and no other keeps the nonce", () => {
    const seen = [movement(1n, "0x0c"), movement(5n, null)];
    settleNonces(seen, [transfer]);
    expect(noncesOf(seen)).toEqual([null, "0x0c"]);
  });

  test("two transfers alike have one each", () => {
    const both = { usedNonces: ["0x0c", "0x0d"] };
    const seen = [movement(5n, null, both), movement(5n, "0x0c", both), movement(5n, "0x0d", both)];
    settleNonces(seen, [transfer, { ...transfer, authorization_nonce: "0x0d" }]);
    expect(noncesOf(seen)).toEqual(["0x0c", "0x0d", null]);
  });

  test.each([
    { token: "0x71" },
    { payer: "0xab" },
    { receiver: "0xbc" },
    { usedNonces: ["0x0e"] },
    { usedNonces: undefined },
  ])("one that differs stays as it is: %o", (other) => {
    const seen = [movement(5n, null, other)];
    settleNonces(seen, [transfer]);
    expect(noncesOf(seen)).toEqual([null]);
  });
});
