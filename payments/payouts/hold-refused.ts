import { getChain } from "../../chains/open-chains.ts";
import { moveRows } from "../../db/moves.ts";
import type { DueRefund } from "../../db/queries/refunds.ts";
import { getTransferDriver } from "../../transfers/find-transfer-driver.ts";
import type { ScreeningDeps } from "../../transfers/list-screening.ts";
import { screenAccounts } from "../../transfers/screen-accounts.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { ForgottenPayouts } from "./paid-before-restore.ts";
import { chainOf } from "./sign-payout.ts";

/**
 * Holds a refund and returns `not_served` when the operator does not serve its receiver, or `receiver_blocked` when the token's issuer
 * blocks it. Nothing is signed for such a refund: a signature stays valid, so its money could not go back to the merchant's balance.
 */
export async function holdRefused(
  deps: Pick<PaymentDeps, "db" | "now" | "log" | "chains"> & ScreeningDeps,
  { id, asset, receiver }: DueRefund,
  forgotten: ForgottenPayouts,
): Promise<"not_served" | "receiver_blocked" | undefined> {
  const account = receiver ?? "";
  const chain = getChain(deps.chains, chainOf(asset));
  const refused = await screenAccounts(deps, chain, [account]);
  const held_reason = refused.size > 0 ? "screening" : "receiver_blocked";
  // One that was sent before a restore is adopted, and nothing is sent.
  const mayPass = async () => forgotten.has(id) || !(await getTransferDriver(chain).isBlockedByIssuer(asset, account));
  if (refused.size === 0 && (await mayPass())) return undefined;
  deps.log.error(
    { refund: id, reason: held_reason },
    "refund held: its receiver is not served, or the token blocks it",
  );
  const set = { due_at: null, held_reason } as const;
  await moveRows(deps.db, "refund", { ids: [id], from: "due", to: "held", at: deps.now(), set });
  return refused.size > 0 ? "not_served" : "receiver_blocked";
}
