import { expect } from "vitest";
import type { SolanaKey } from "../../ops/local/solana-client.ts";
import { fundSolanaBuyer, tokenBalance } from "./solana.ts";
import type { SolanaTill } from "./solana-till.ts";

/** A payment whose wallet has been given its transaction (base64). */
export type Begun = { buyer: SolanaKey; paymentId: string; optionId: string; transaction: string };

/** A till's confirms step by step: what a wallet is given, what it hands back, and what became of it. */
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
    /** Confirm and verdict. */
    judge: async ({ paymentId, optionId }: Begun, signed: string) => {
      const attemptId = await till.attemptWith(paymentId, optionId, signed);
      await till.verify(attemptId);
      return till.verdict(attemptId);
    },
    /** Tokens of the treasury, in the smallest unit. */
    treasuryHolds: () => tokenBalance(solana, till.keys.treasury.address),
    /** Nothing was signed by us, and the payment waits for its buyer. */
    expectUntouched: async (paymentId: string) => {
      expect(await till.status(paymentId)).toMatchObject({ state: "requires_action", isFinal: false });
      expect((await rowsOf(paymentId)).transfers).toEqual([]);
    },
    /** Submits, and waits until the money is booked. */
    carryThrough: async (paymentId: string) => {
      await till.submit();
      await till.watchUntilState(paymentId, "succeeded");
    },
  };
}
