import { setTimeout as pause } from "node:timers/promises";
import { privateKeyToAccount } from "viem/accounts";
import { type Buyer, createPayment, pay, type Shop, waitFinal } from "../../local/buyer-client.ts";
import type { Stack } from "../../local/stack.ts";
import type { CreatedPayment, History } from "../faults/response-history.ts";

/** The time between two new payments, milliseconds. */
export const EVERY_MS = 250;
/** The price of everything, so that each forgotten payout has the amount of a payment: $10. */
const CENTS = "1000";
/** Of this many payments, one is paid on Solana. */
const SOLANA_EVERY = 4;

/** A shop whose buyers pay one payment after another, and the responses that it received. */
export type DrillShop = {
  /** The responses that the shop and its buyers received. */
  history: History;
  /** Returns how many payments it knows to have succeeded. */
  succeeded(): number;
  /** Creates no more payments. Buyers whose payments have not ended give up. */
  close(): Promise<void>;
};

/** Opens the shop. A request that fails ends the payment for the shop, as after the loss of the service. */
export function openShop(stack: Stack): DrillShop {
  const { baseUrl, live } = stack.file();
  const shop: Shop = { baseUrl, caller: live };
  const evm = stack.chain.buyers.map(({ privateKey }) => privateKeyToAccount(privateKey));
  const solana = stack.solana.buyers;
  const history: History = { statuses: [], creations: [], payments: [], contractViolations: [], lost: [] };
  const closing = new AbortController();
  const journeys: Promise<unknown>[] = [];

  async function sell(index: number): Promise<void> {
    const isSolana = index % SOLANA_EVERY === 0;
    const buyer: Buyer | undefined = isSolana ? solana[index % solana.length] : evm[index % evm.length];
    if (!buyer) throw new Error("the stack has no buyers");
    const paymentId = await createPayment(shop, { referenceId: `drill-${index}`, cents: CENTS });
    const payment: CreatedPayment = {
      paymentId,
      mode: "live",
      kind: isSolana ? "Solana" : "EVM",
      ends: ["succeeded", "expired"],
      endsAfterExpiry: false,
      confirmed: false,
      createdAt: performance.now(),
      forgotten: false,
      left: false,
    };
    history.payments.push(payment);
    await pay(shop, paymentId, buyer, isSolana ? stack.solana.id : stack.chain.id);
    payment.confirmed = true;
    const begunAt = performance.now();
    const { status, isFinal, info } = await waitFinal(shop, paymentId, 60_000);
    const report = { paymentId, by: "status", begunAt, endedAt: performance.now(), status, isFinal } as const;
    history.statuses.push({ ...report, txId: info?.txId ?? null });
  }
  const selling = (async () => {
    for (let index = 0; !closing.signal.aborted; index += 1) {
      journeys.push(sell(index).catch(() => undefined));
      await pause(EVERY_MS, undefined, { signal: closing.signal }).catch(() => undefined);
    }
  })();
  return {
    history,
    succeeded: () => history.statuses.filter(({ status }) => status === "succeeded").length,
    async close() {
      closing.abort();
      await selling;
      await Promise.all(journeys);
    },
  };
}
