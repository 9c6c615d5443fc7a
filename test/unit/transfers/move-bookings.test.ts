import { expect, test } from "vitest";
import { pairMovements } from "../../../transfers/move-bookings.ts";

const deposit = {
  tx_hash: "0x01",
  token: "0xa1",
  payer: "0xb1",
  receiver: "0xc1",
  amount: 5n,
  authorization_nonce: null as string | null,
};
const pairsOf = (movements: readonly (typeof deposit)[], orphaned: readonly (typeof deposit)[]) =>
  pairMovements(movements, orphaned).map(({ movement, orphan }) => [
    movements.indexOf(movement),
    orphaned.indexOf(orphan),
  ]);

test("equal movements of one transaction are paired one to one, and one more of them has no pair", () => {
  const three = [{ ...deposit }, { ...deposit }, { ...deposit }];
  const two = [{ ...deposit }, { ...deposit }];
  expect(pairsOf(three, two)).toEqual([
    [0, 0],
    [1, 1],
  ]);
  expect(pairsOf(two, three)).toEqual([
    [0, 0],
    [1, 1],
  ]);
});

test.each([
  ["another transaction", { tx_hash: "0x02" }],
  ["another token", { token: "0xa2" }],
  ["another payer", { payer: "0xb2" }],
  ["another receiver", { receiver: "0xc2" }],
  ["another amount", { amount: 6n }],
])("a movement of %s has no pair", (_what, other) => {
  expect(pairsOf([{ ...deposit, ...other }], [deposit])).toEqual([]);
});

test("equal movements with different authorization nonces are paired by their nonces", () => {
  const [one, two] = [
    { ...deposit, authorization_nonce: "0x11" },
    { ...deposit, authorization_nonce: "0x22" },
  ];
  expect(pairsOf([one, two], [{ ...two }, { ...one }])).toEqual([
    [0, 1],
    [1, 0],
  ]);
});

test("a movement whose authorization nonce was not known before is paired", () => {
  expect(pairsOf([{ ...deposit, authorization_nonce: "0x11" }], [deposit])).toEqual([[0, 0]]);
});
