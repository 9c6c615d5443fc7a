import type { OptionRow } from "../db/options.ts";
import type { NewTransfer } from "../db/transfers.ts";
import { newId } from "./ids.ts";

/** Returns the unsigned transfer that pays a payment by an option. */
export function toTransfer(option: OptionRow): NewTransfer & { payment_id: string } {
  const { payment_id, kind, chain, asset, token, payer, receiver, amount, authorization_nonce, valid_before } = option;
  return {
    ...{ id: newId("trf"), purpose: "payment", payment_id, settlement_id: null },
    ...{ kind, chain, asset, token, payer, receiver, amount, authorization_nonce, valid_before },
    ...{ signature: null, permit: null },
    ...{ lane_id: null, lane_nonce: null, hold_until: null, last_trouble: null, due_at: null },
  };
}
