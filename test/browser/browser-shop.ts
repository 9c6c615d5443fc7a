import { moveRows } from "../../db/moves.ts";
import type { PaymentState } from "../../db/states.ts";
import { type Api, asset, makeMerchant, makePayment, startApi } from "../integration/api/start-api.ts";

export const shopUrls = {
  successUrl: "https://shop.example.test/thanks?order=17",
  errorUrl: "https://shop.example.test/sorry",
};

/** The URLs of an operator's terms and privacy policy. */
export const legal = {
  termsUrl: "https://operator.example.test/terms?of=service",
  privacyUrl: "https://operator.example.test/privacy",
};

/** Opens an api with its own URL and a test-mode merchant whose payments return to a shop. */
export async function openShop(options: Parameters<typeof startApi>[0] = {}) {
  const api = await startApi({ ...options, ownUrl: true });
  const merchant = await makeMerchant(api);
  const pay = (more: object = {}): Promise<string> =>
    makePayment(api, merchant, { referenceId: "order-17", checkout: shopUrls, ...more });
  const linkOf = (id: string, more = ""): string => `${api.url}/?pid=${id}${more}`;
  return { api, merchant, pay, linkOf };
}

const before: Record<PaymentState, PaymentState[]> = {
  requires_action: [],
  processing: ["processing"],
  succeeded: ["processing", "succeeded"],
  failed: ["processing", "failed"],
  expired: ["expired"],
  cancelled: ["cancelled"],
};

/**
 * Moves a new payment to a state by real transitions, and wakes its long polls. A page sees only the last state, however
 * slow the machine is, because one transaction makes all transitions.
 */
export async function moveToState(api: Api, id: string, to: PaymentState): Promise<void> {
  await api.db.transaction().execute(async (transaction) => {
    let from: PaymentState = "requires_action";
    for (const state of before[to]) {
      const paid = { tx_id: `0x${"5e".repeat(32)}`, paid_asset: asset, paid_amount: 5_000_000n };
      const set = state === "succeeded" ? paid : {};
      const move = { ids: [id], from, to: state, at: new Date(), set };
      await moveRows(transaction, "payment", move as Parameters<typeof moveRows<"payment", PaymentState>>[2]);
      from = state;
    }
  });
  await api.publishPaymentChanges([id]);
}
