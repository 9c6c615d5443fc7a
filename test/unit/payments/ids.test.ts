import { expect, test } from "vitest";
import { paymentId } from "../../../api/contract/request-schemas.ts";
import { newId } from "../../../payments/ids.ts";

const at = (second: number) => new Date(second * 1000);

test("an id of a later second sorts after the ids of earlier seconds, as text", () => {
  const seconds = [0, 1, 255, 256, 1_763_869_000, 1_763_869_001, 4_294_967_295];
  const ids = seconds.map((second) => newId("pay", at(second)));
  expect(ids.toSorted()).toEqual(ids);
  expect(() => newId("pay", at(4_294_967_296))).toThrow(RangeError);
});

test("an id keeps its form and says its second", () => {
  const id = newId("pay", new Date("2026-11-23T04:30:00.999Z"));
  expect(paymentId.parse(id)).toBe(id);
  expect(id).toMatch(/^pay_[0-9a-f]{32}$/);
  expect(id.slice(4, 12)).toBe((Date.UTC(2026, 10, 23, 4, 30) / 1000).toString(16));
});

test("96 bits of an id are random: in ids of one second each later digit takes every value", () => {
  const ids = Array.from({ length: 1_000 }, () => newId("pay", at(1_763_869_000)));
  const digits = Array.from({ length: 32 }, (_, place) => new Set(ids.map((id) => id.charAt(4 + place))).size);
  expect(digits).toEqual([...Array.from({ length: 8 }, () => 1), ...Array.from({ length: 24 }, () => 16)]);
});
