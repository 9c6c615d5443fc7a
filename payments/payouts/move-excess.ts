import { canonicalAddress } from "../../chains/canonical-ids.ts";
import type { Chain } from "../../chains/chain.ts";
import { getToken } from "../../chains/open-chains.ts";
import { commitIfOk } from "../../db/in-transaction.ts";
import { type NewTransfer, putColdTransfer, sumUnfinishedPayouts } from "../../db/queries/transfers.ts";
import { coldNonce } from "../../signer/cold-transfers.ts";
import { getTransferDriver } from "../../transfers/find-transfer-driver.ts";
import { newId } from "../ids.ts";
import { enqueueRelays } from "../lifecycle/relay-transfers.ts";
import { type PaymentDeps, REENQUEUE_AFTER_MS } from "../payment-deps.ts";
import { listCaughtUp, type PayoutDeps } from "./sign-payout.ts";

type Deps = PaymentDeps & PayoutDeps;

/**
 * Asks the signer for each asset of a chain whether the treasury holds too much, and stores the transfer to the cold address that
 * it signs. The transfer's nonce is unique in the database and on chain, so that many workers may ask at once. A stored transfer
 * that is not sent yet follows the signer's answer, because the signer's operator may name another address.
 */
export async function moveExcess(deps: Deps, chainId: string): Promise<void> {
  const chain = deps.chains.get(chainId);
  const epoch = (await listCaughtUp(deps, [chainId])).get(chainId);
  if (!chain || epoch === undefined) return;
  for (const asset of chain.tokens.keys()) {
    const pending = await sumUnfinishedPayouts(deps.db, { chain: chainId, asset });
    const result = await deps.signer.moveExcess({ asset, pending });
    if (!result.ok) deps.log.warn({ asset, reason: result.reason, detail: result.detail }, "excess is not moved");
    if (!result.ok || result.transfer === null) continue;
    const { number, amount, receiver, signature } = result.transfer;
    const nonce = coldNonce(deps.networks.deployment, { asset, number });
    const transfer = toTransfer(deps, chain, { asset, amount, receiver, nonce, signature });
    const written = await commitIfOk(deps.db, async (db) => {
      const transferId = await putColdTransfer(db, transfer, deps.now());
      const passed = await deps.epoch.pass(db, epoch);
      return passed.ok ? { ...passed, transferId } : passed;
    });
    if (!written.ok) return;
    await written.afterCommit?.();
    const { transferId } = written;
    if (transferId === undefined) continue;
    deps.log.info({ asset, amount: String(amount), receiver, number }, "excess moves to the cold address");
    await enqueueRelays(deps, [{ chain: chainId, transferId }]);
  }
}

function toTransfer(
  deps: Pick<PaymentDeps, "now">,
  chain: Chain,
  of: { asset: string; amount: bigint; receiver: string; nonce: string; signature: string | null },
): NewTransfer & { purpose: "cold" } {
  const { asset, amount, receiver, nonce, signature } = of;
  const at = deps.now();
  return {
    id: newId("trf", at),
    purpose: "cold",
    payment_id: null,
    settlement_id: null,
    refund_id: null,
    chain: chain.chain,
    asset,
    token: getToken(chain, asset).token,
    payer: chain.treasury,
    amount,
    receiver: canonicalAddress(chain.chain, receiver),
    authorization_nonce: nonce,
    ...getTransferDriver(chain).payoutForm(asset),
    signature: signature === null ? null : Buffer.from(signature.slice(2), "hex"),
    permit: null,
    lane_id: null,
    lane_nonce: null,
    hold_until: null,
    last_error: null,
    due_at: new Date(at.getTime() + REENQUEUE_AFTER_MS),
  };
}
