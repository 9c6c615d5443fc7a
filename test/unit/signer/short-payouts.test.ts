import { expect, test } from "vitest";
import type { PayoutResult } from "../../../signer/protocol.ts";
import { createShortPayouts } from "../../../signer/short-payouts.ts";

const short: PayoutResult = { ok: false, reason: "funds_short", detail: "" };
const signed = { ok: true } as PayoutResult;
const payout = (number: number, amount = 100n) => ({ nonce: `0x${number}`, amount }) as const;

function open() {
  let seconds = 0;
  const wait = (more: number) => {
    seconds += more;
  };
  return { ...createShortPayouts(() => new Date(seconds * 1_000)), wait };
}

test("a payout ages from its first refusal for lack of deposits until it is signed", () => {
  const { note, oldestSeconds, wait } = open();
  expect(oldestSeconds()).toBe(0);
  note(payout(1), short);
  wait(100);
  note(payout(2), short);
  note(payout(1), short);
  note(payout(3), { ...short, reason: "limit_payout" });
  wait(100);
  expect(oldestSeconds()).toBe(200);
  note(payout(1), signed);
  expect(oldestSeconds()).toBe(100);
  note(payout(2), signed);
  expect(oldestSeconds()).toBe(0);
});

test("a lower amount that is signed does not hide the higher one that was refused", () => {
  const { note, oldestSeconds, wait } = open();
  note(payout(1, 500n), short);
  note(payout(1, 101n), short);
  wait(60);
  note(payout(1, 101n), signed);
  expect(oldestSeconds()).toBe(60);
  note(payout(1, 500n), signed);
  expect(oldestSeconds()).toBe(0);
});

test("a flood of refusals displaces no earlier one", () => {
  const { note, oldestSeconds, wait } = open();
  note(payout(0), short);
  wait(60);
  for (let number = 1; number <= 10_001; number += 1) note(payout(number), short);
  expect(oldestSeconds()).toBe(60);
  note(payout(0), signed);
  expect(oldestSeconds()).toBe(0);
});

test("a payout that is not asked for again is forgotten after an hour", () => {
  const { note, oldestSeconds, wait } = open();
  note(payout(1), short);
  wait(3_000);
  note(payout(1), short);
  wait(3_600);
  expect(oldestSeconds()).toBe(6_600);
  wait(1);
  expect(oldestSeconds()).toBe(0);
});
