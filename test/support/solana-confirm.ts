import { expect } from "vitest";
import type { SolanaKey } from "../../ops/local/solana-client.ts";
import { fundSolanaBuyer, tokenBalance } from "./solana.ts";
import type { SolanaTill } from "./solana-till.ts";

/** A payment with the transaction (base64) that its wallet is asked to sign. */
export type Begun = { buyer: SolanaKey; paymentId: string; optionId: string; transaction: string };

/** Returns the steps of a merchant fixture's confirms: fetching a transaction, confirming it and checking the outcome. */
export function confirmsOf(till: SolanaTill) {
  const { solana } = till;
  const begin = async (from?: SolanaKey): Promise<Begun> => {
    const buyer = from ?? (await fundSolanaBuyer(solana));
    const paymentId = await till.create();
    const [option] = await till.offer(paymentId, buyer);
    if (!option) throw new Error("there is no way to pay");
    const transaction = await till.fetchTransaction(paymentId, option.id);
    return { buyer, paymentId, optionId: option.id, transaction };
  };
  const rowsOf = async (paymentId: string) => {
    const transfers = (await till.transfers()).filter(({ payment_id }) => payment_id === paymentId);
    const slots = transfers.map(({ lane_id, lane_nonce }) => `${lane_id} ${lane_nonce}`);
    const all = await till.transactions();
    return { transfers, transactions: all.filter(({ lane_id, nonce }) => slots.includes(`${lane_id} ${nonce}`)) };
  };
  return {
    begin,
    rowsOf,
    confirm: ({ paymentId, optionId }: Begun, ...data: unknown[]) =>
      till.confirm(paymentId, optionId, [{ type: "walletRpc", data }]),
    /** Confirms and verifies. Returns the verification result. */
    judge: async ({ paymentId, optionId }: Begun, signed: string) => {
      const attemptId = await till.attemptWith(paymentId, optionId, signed);
      await till.verify(attemptId);
      return till.verdict(attemptId);
    },
    /** Returns the treasury's tokens in the smallest unit. */
    treasuryHolds: () => tokenBalance(solana, till.keys.treasury.address),
    /** Expects that the relayer has signed nothing and that the payment is still open. */
    expectUntouched: async (paymentId: string) => {
      expect(await till.status(paymentId)).toMatchObject({ state: "requires_action", isFinal: false });
      expect((await rowsOf(paymentId)).transfers).toEqual([]);
    },
    /** Submits the transaction and waits until the money is booked. */
    carryThrough: async (paymentId: string) => {
      await till.submit();
      await till.watchUntilState(paymentId, "succeeded");
    },
  };
}
