import type { Hex } from "viem";
import { findTag } from "../chains/evm/movements.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { throwFault } from "../chains/evm/rpc-errors.ts";
import type { Signed, Verdict } from "./verdict.ts";

/**
 * Judges what a wallet says of its own transaction. The hash is only a hint: the transaction has to be there, waiting
 * or in a block, from the payer, to the token, with exactly the call data that was asked for. Whoever merely saw the
 * payment cannot claim it by an invented hash. Throws ChainFault when the chain cannot be asked.
 */
export async function judgePush(chain: EvmChain, signed: Signed): Promise<Verdict> {
  const found = await chain
    .rpc({ method: "eth_getTransactionByHash", params: [signed.proof as Hex] })
    .catch(throwFault);
  if (!found) return { ok: false, later: true, reason: "the network does not know the transaction" };
  const { token, payer, receiver, amount } = signed;
  const movement = { token: token as Hex, payer: payer as Hex, receiver: receiver as Hex, amount };
  return findTag(found, movement) === signed.authorization_nonce
    ? { ok: true, smartWallet: false }
    : { ok: false, reason: "the transaction is not the payment that was asked for" };
}
