import { describe, expect, test } from "vitest";
import { keepLinked } from "../../../../transfers/evm/read-blocks.ts";
import { isProof, listNonces, resolveNonces } from "../../../../transfers/match-movements.ts";

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

test("each nonce that movements may have is listed once", () => {
  const [candidateNonces, authorizationNonce] = [["0x0c", "0x0d"], "0x0c"];
  const shared = Array.from({ length: 3 }, () => ({ authorizationNonce, candidateNonces }));
  const seen = [
    ...shared,
    { authorizationNonce: null, candidateNonces: ["0x0d", "0x0e"] },
    { authorizationNonce: "0x0f" },
  ];
  expect(listNonces(seen as never).toSorted()).toEqual(["0x0c", "0x0d", "0x0e", "0x0f"]);
});

describe("when several movements may belong to one authorization", () => {
  const transfer = { token: "0x70", payer: "0xaa", receiver: "0xbb", amount: 5n, authorization_nonce: "0x0c" };
  const movement = (amount: bigint, authorizationNonce: string | null, more: object = {}) =>
    ({
      token: "0x70",
      payer: "0xaa",
      receiver: "0xbb",
      amount,
      authorizationNonce,
      candidateNonces: ["0x0c"],
      ...more,
    }) as never;
  const noncesOf = (seen: { authorizationNonce: string | null }[]) => seen.map((one) => one.authorizationNonce);

  test("only the movement with the transfer's receiver and amount keeps the nonce", () => {
    const seen = [movement(1n, "0x0c"), movement(5n, null)];
    resolveNonces(seen, [transfer]);
    expect(noncesOf(seen)).toEqual([null, "0x0c"]);
  });

  test("two equal transfers get one movement each", () => {
    const both = { candidateNonces: ["0x0c", "0x0d"] };
    const seen = [movement(5n, null, both), movement(5n, "0x0c", both), movement(5n, "0x0d", both)];
    resolveNonces(seen, [transfer, { ...transfer, authorization_nonce: "0x0d" }]);
    expect(noncesOf(seen)).toEqual(["0x0c", "0x0d", null]);
  });

  test.each([
    { token: "0x71" },
    { payer: "0xab" },
    { receiver: "0xbc" },
    { candidateNonces: ["0x0e"] },
    { candidateNonces: undefined },
  ])("a movement that differs is not changed: %o", (other) => {
    const seen = [movement(5n, null, other)];
    resolveNonces(seen, [transfer]);
    expect(noncesOf(seen)).toEqual([null]);
  });
});
