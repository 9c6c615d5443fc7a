import { coldKey, deriveNonce, type KeyParts, refundKey, returnKey, settlementKey } from "../chains/natural-key.ts";
import { type AuthorizedPayout, listClaimedPayments } from "./records.ts";
import type { SignerDeps } from "./signer-deps.ts";
import type { Flow, Histories } from "./treasury-histories.ts";

/** Numbers in a row that no payout has, after which no higher number is looked for. */
const SETTLEMENT_GAP = 1_000;
const REFUND_GAP = 20;

/** What a nonce belongs to. `number` counts the merchant's settlements of the asset, and is 0 for everything else. */
type Purpose = Pick<AuthorizedPayout, "kind" | "merchantId" | "paymentId"> & { number: number };

/** A movement out of a treasury, and what it was for; undefined if it belongs to no payout. */
export type Outflow = Flow & { of: Purpose | undefined };

/**
 * Returns what each movement out of the treasuries was for: the settlements and refunds of every merchant and payment with a
 * deposit, transfers to the cold address, and returns of what came.
 */
export function attributeOutflows(
  { store, chains, deployment }: Pick<SignerDeps, "store" | "chains" | "deployment">,
  { inflows, outflows }: Histories,
): Outflow[] {
  const nonces = new Set(outflows.flatMap(({ movement }) => movement.authorizationNonce ?? []));
  const found = new Map<string, Purpose>();
  const search = (gap: number, keyOf: (number: number) => KeyParts, purpose: Omit<Purpose, "number">) => {
    for (let number = 1, missed = 0; missed < gap; number += 1) {
      const nonce = deriveNonce(deployment, keyOf(number));
      missed = nonces.has(nonce) ? 0 : missed + 1;
      if (nonces.has(nonce)) found.set(nonce, { ...purpose, number: purpose.kind === "settlement" ? number : 0 });
    }
  };
  const assets = [...chains.values()].flatMap(({ tokens }) => [...tokens.keys()]);
  const payments = listClaimedPayments(store);
  const withoutMerchant = { merchantId: null, paymentId: null };
  for (const asset of assets)
    search(SETTLEMENT_GAP, (number) => coldKey({ asset, number }), { kind: "cold", ...withoutMerchant });
  for (const merchantId of new Set(payments.map((one) => one.merchantId)))
    for (const asset of assets)
      search(SETTLEMENT_GAP, (number) => settlementKey({ merchantId, asset, number }), {
        kind: "settlement",
        merchantId,
        paymentId: null,
      });
  for (const { merchantId, paymentId } of payments)
    search(REFUND_GAP, (number) => refundKey({ merchantId, paymentId, number }), {
      kind: "refund",
      merchantId,
      paymentId,
    });
  for (const { chain, movement } of inflows) {
    const nonce = deriveNonce(deployment, returnKey({ chain, ...movement }));
    if (nonces.has(nonce)) found.set(nonce, { kind: "return", ...withoutMerchant, number: 0 });
  }
  return outflows.map((one) => ({ ...one, of: found.get(one.movement.authorizationNonce ?? "") }));
}
