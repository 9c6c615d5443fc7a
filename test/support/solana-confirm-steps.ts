import { expect } from "vitest";
import type { SolanaKey } from "../../local/solana-client.ts";
import type { SolanaMerchantFixture } from "./solana-merchant-fixture.ts";
import { fundSolanaBuyer, tokenBalance } from "./test-solana.ts";

/** A payment with the transaction (base64) that its wallet is asked to sign. */
export type StartedPayment = { buyer: SolanaKey; paymentId: string; optionId: string; transaction: string };

/**
 * Returns the steps of a merchant fixture's confirms: fetching a transaction, confirming it and checking the outcome.
 */
export function makeConfirmSteps(fixture: SolanaMerchantFixture) {
  const { solana } = fixture;
  const begin = async (from?: SolanaKey): Promise<StartedPayment> => {
    const buyer = from ?? (await fundSolanaBuyer(solana));
    const paymentId = await fixture.create();
    const [option] = await fixture.offer(paymentId, buyer);
    if (!option) throw new Error("there is no way to pay");
    const transaction = await fixture.fetchTransaction(paymentId, option.id);
    return { buyer, paymentId, optionId: option.id, transaction };
  };
  const rowsOf = async (paymentId: string) => {
    const transfers = (await fixture.transfers()).filter(({ payment_id }) => payment_id === paymentId);
    const slots = transfers.map(({ lane_id, lane_nonce }) => `${lane_id} ${lane_nonce}`);
    const all = await fixture.transactions();
    return { transfers, transactions: all.filter(({ lane_id, nonce }) => slots.includes(`${lane_id} ${nonce}`)) };
  };
  return {
    begin,
    rowsOf,
    confirm: ({ paymentId, optionId }: StartedPayment, ...data: unknown[]) =>
      fixture.confirm(paymentId, optionId, [{ type: "walletRpc", data }]),
    /** Confirms and verifies. Returns the verification result. */
    confirmAndVerify: async ({ paymentId, optionId }: StartedPayment, signed: string) => {
      const attemptId = await fixture.attemptWith(paymentId, optionId, signed);
      await fixture.verify(attemptId);
      return fixture.verificationResult(attemptId);
    },
    /** Returns the treasury's tokens in the smallest unit. */
    treasuryBalance: () => tokenBalance(solana, fixture.keys.treasury.address),
    /** Expects that the relayer has signed nothing and that the payment is still open. */
    expectUntouched: async (paymentId: string) => {
      expect(await fixture.status(paymentId)).toMatchObject({ state: "requires_action", isFinal: false });
      expect((await rowsOf(paymentId)).transfers).toEqual([]);
    },
    /** Submits the transaction and waits until the money is booked. */
    finishPayment: async (paymentId: string) => {
      await fixture.submit();
      await fixture.watchUntilState(paymentId, "succeeded");
    },
  };
}
