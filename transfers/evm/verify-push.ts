import { parseAnswer } from "../../chains/errors.ts";
import { readBlock } from "../../chains/evm/blocks.ts";
import { readReceipt } from "../../chains/evm/evm-broadcast.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { throwChainError } from "../../chains/evm/rpc-errors.ts";
import { findTag, readTransferLogs } from "../../chains/evm/transfer-logs.ts";
import { hasBooked } from "../../db/queries/unmatched-movements.ts";
import { isSameMovement } from "../match-movements.ts";
import { REVERTED } from "../refusal-reasons.ts";
import type { EvmSigned, VerificationResult, VerifyDeps } from "../verification.ts";

/**
 * Verifies a transaction that a wallet claims to have sent. The hash is only a hint: the transaction must be from the payer,
 * to the token, with exactly the requested call data, and in a block in which it has moved the amount. A token can take a fee of it, or
 * return false. A pending transaction may never
 * be included (a nonce gap, a replacement), so it is not a payment yet. One in a block after the end of its quote is no payment. Money
 * that is booked as an exception, because it moved too late, pays nothing. Throws ChainError when the chain cannot be read.
 */
export async function verifyPush(
  deps: Pick<VerifyDeps, "db">,
  chain: EvmChain,
  signed: EvmSigned,
): Promise<VerificationResult> {
  const found = await chain.rpc({ method: "eth_getTransactionByHash", params: [signed.proof] }).catch(throwChainError);
  if (!found) return { ok: false, later: true, reason: "the network does not know the transaction" };
  const { token, payer, receiver, amount, moveBy } = signed;
  const movement = { token, payer, receiver, amount };
  if (parseAnswer(() => findTag(found, movement)) !== signed.authorization_nonce)
    return { ok: false, reason: "the transaction is not the payment that was asked for" };
  const receipt = found.blockHash ? await readReceipt(chain.rpc, found.hash) : undefined;
  if (!receipt) return { ok: false, later: "pending", reason: "the transaction is in no block" };
  if (receipt.reverted) return { ok: false, reason: REVERTED };
  if (moveBy && (await readBlock(chain.rpc, receipt.blockNumber)).at > moveBy)
    return { ok: false, reason: "the transaction is in a block after the end of its quote" };
  const made = readTransferLogs(receipt.logs, chain).filter((log) => isSameMovement(log, movement));
  if (made.length === 0) return { ok: false, reason: "the transaction did not move the amount that was asked for" };
  if (await hasBooked(deps.db, chain.chain, made))
    return { ok: false, reason: "the transaction's money is booked as an exception" };
  return { ok: true, smartWallet: false };
}
