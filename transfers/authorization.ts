import type { Hex } from "viem";
import { type Authorization, encodeTransfer } from "../chains/evm/eip3009.ts";
import type { Call } from "../chains/evm/multicall.ts";

/** The members of a transfer, or of an option, that its EIP-3009 authorization is made of. */
export type AuthorizationRow = {
  token: string;
  payer: string;
  receiver: string;
  amount: bigint;
  valid_before: number;
  authorization_nonce: string;
};

/** The authorization that a row stands for. */
export function toAuthorization(row: AuthorizationRow): Authorization {
  return {
    token: row.token as Hex,
    from: row.payer as Hex,
    to: row.receiver as Hex,
    value: row.amount,
    validBefore: row.valid_before,
    nonce: row.authorization_nonce as Hex,
  };
}

/** The call that makes a row's transfer. */
export function toCall(row: AuthorizationRow, signature: Hex): Call {
  return { target: row.token as Hex, data: encodeTransfer(toAuthorization(row), signature) };
}
