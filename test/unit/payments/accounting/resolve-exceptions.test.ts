import { expect, test } from "vitest";
import { classifyException, type ExceptionKind } from "../../../../payments/accounting/resolve-exceptions.ts";

const none = {
  booked: "unmatched" as const,
  amount: 5n,
  asked: null,
  paymentId: null,
  paymentState: null,
  transferId: null,
};

test.each<[ExceptionKind, Partial<Parameters<typeof classifyException>[0]>]>([
  ["unknown", {}],
  ["late", { paymentId: "pay_1", paymentState: "expired", asked: 5n }],
  ["late", { paymentId: "pay_1", paymentState: "failed", transferId: "trf_1" }],
  ["double", { paymentId: "pay_1", paymentState: "succeeded", asked: 5n }],
  ["wrong_amount", { paymentId: "pay_1", paymentState: "succeeded", asked: 6n }],
  ["wrong_amount", { paymentId: "pay_1", paymentState: "requires_action", asked: 4n }],
  ["left", { amount: -5n }],
  ["dust", { booked: "dust" }],
  ["forgotten", { amount: -5n, transferId: "trf_1" }],
  ["overpaid", { amount: -5n, transferId: "trf_1", booked: "overpaid" }],
])("an unexpected movement is classified as %s", (kind, row) => {
  expect(classifyException({ ...none, ...row })).toBe(kind);
});
