import type { Scenario } from "./steps.ts";

/** The states that test mode moves a payment to. */
type SimulatedStatus = "processing" | "succeeded" | "failed" | "expired" | "cancelled";

/** Returns the scenario of a new payment that is moved to a state, if one is given. */
export function simulate(status?: SimulatedStatus): Scenario {
  return async ({ client, note }) => {
    const amount = { unit: "iso4217/USD", value: "1250" };
    const { paymentId } = await client.payments.create({
      amount,
      referenceId: "pay-trigger",
      description: "Made by pay trigger",
    });
    note(`created ${paymentId} of 12.50 USD`);
    if (status === undefined) return paymentId;
    await client.payments.simulate(paymentId, status);
    note(`moved it to ${status}`);
    return paymentId;
  };
}

/** Refunds a new payment. */
export const refund: Scenario = async (steps) => {
  const paymentId = await simulate("succeeded")(steps);
  const { refundId } = await steps.client.refunds.create({ paymentId });
  steps.note(`refunded it: ${refundId}`);
  return refundId;
};
