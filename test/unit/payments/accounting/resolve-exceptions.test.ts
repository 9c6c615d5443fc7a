import { expect, test } from "vitest";
import { classifyException, type ExceptionKind } from "../../../../payments/accounting/resolve-exceptions.ts";

const none = {
  booked: "unmatched" as const,
  amount: 5n,
  asked: null,
  payment_id: null,
  payment_state: null,
  transfer_id: null,
};

test.each<[ExceptionKind, Partial<Parameters<typeof classifyException>[0]>]>([
  ["unknown", {}],
  ["late", { payment_id: "pay_1", payment_state: "expired", asked: 5n }],
  ["late", { payment_id: "pay_1", payment_state: "failed", transfer_id: "trf_1" }],
  ["double", { payment_id: "pay_1", payment_state: "succeeded", asked: 5n }],
  ["wrong_amount", { payment_id: "pay_1", payment_state: "succeeded", asked: 6n }],
  ["wrong_amount", { payment_id: "pay_1", payment_state: "requires_action", asked: 4n }],
  ["left", { amount: -5n }],
  ["dust", { booked: "dust" }],
  ["forgotten", { amount: -5n, transfer_id: "trf_1" }],
  ["overpaid", { amount: -5n, transfer_id: "trf_1", booked: "overpaid" }],
])("an unexpected movement is classified as %s", (kind, row) => {
  expect(classifyException({ ...none, ...row })).toBe(kind);
});
