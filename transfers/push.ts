import type { Hex } from "viem";
import { findTag } from "../chains/evm/movements.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { throwFault } from "../chains/evm/rpc-errors.ts";
import { readReceipt } from "../chains/evm/send.ts";
import type { Signed, Verdict } from "./verdict.ts";

/** Why a push is refused that is in a block and has failed there: it has moved nothing. */
export const REVERTED = "the transaction failed";

/**
 * Verifies a transaction that a wallet says to have sent. The hash is only a hint: the transaction has to be from the
 * payer, to the token, with exactly the call data that was asked for, and in a block without having failed. One that
 * waits for a block may never come into one (a gap before its nonce, another transaction under it), so it pays nothing
 * yet. Throws ChainFault when the chain cannot be asked.
 */
export async function judgePush(chain: EvmChain, signed: Signed): Promise<Verdict> {
  const found = await chain
    .rpc({ method: "eth_getTransactionByHash", params: [signed.proof as Hex] })
    .catch(throwFault);
  if (!found) return { ok: false, later: true, reason: "the network does not know the transaction" };
  const { token, payer, receiver, amount } = signed;
  const movement = { token, payer, receiver, amount };
  if (findTag(found, movement) !== signed.authorization_nonce)
    return { ok: false, reason: "the transaction is not the payment that was asked for" };
  const receipt = found.blockHash ? await readReceipt(chain.rpc, found.hash) : undefined;
  if (!receipt) return { ok: false, later: "pending", reason: "the transaction is in no block" };
  return receipt.reverted ? { ok: false, reason: REVERTED } : { ok: true, smartWallet: false };
}
