import type { PaymentState } from "../../db/states.ts";

export const states: readonly PaymentState[] = [
  "requires_action",
  "processing",
  "succeeded",
  "failed",
  "expired",
  "cancelled",
];
