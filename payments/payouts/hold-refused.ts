import { ChainError } from "../../chains/errors.ts";
import { getChain } from "../../chains/open-chains.ts";
import { moveRows } from "../../db/moves.ts";
import type { DueRefund } from "../../db/queries/refunds.ts";
import { getTransferDriver } from "../../transfers/find-transfer-driver.ts";
import type { ScreeningDeps } from "../../transfers/list-screening.ts";
import { screenAccounts } from "../../transfers/screen-accounts.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { type ForgottenPayouts, wasPaid } from "./paid-before-restore.ts";
import { chainOf } from "./sign-payout.ts";

type Deps = Pick<PaymentDeps, "db" | "now" | "log" | "chains"> & ScreeningDeps;
type Held = "not_served" | "receiver_blocked";

/**
 * Holds a refund and returns `not_served` when the operator does not serve its receiver, or `receiver_blocked` when the token's issuer
 * blocks it. Nothing is signed for such a refund: a signature stays valid, so its money could not go back to the merchant's balance.
 *
 * A refund that was sent before a restore is never held: it cannot be withdrawn, so it could neither begin nor end. Nothing is sent for it
 * any more once what the chain shows is booked. Until then a reorg can revert it, and it waits as `unrecorded_payout`.
 */
async function holdRefused(
  deps: Deps,
  refund: DueRefund,
  forgotten: ForgottenPayouts,
): Promise<Held | "unrecorded_payout" | undefined> {
  const { id } = refund;
  if (wasPaid(forgotten, refund)) return undefined;
  const refused = await findRefusal(deps, refund);
  if (!refused) return undefined;
  if (forgotten.has(id)) {
    deps.log.error({ refund: id, reason: refused }, "refund waits: what the chain shows as sent for it is not final");
    return "unrecorded_payout";
  }
  const held_reason = refused === "not_served" ? "screening" : refused;
  deps.log.error(
    { refund: id, reason: held_reason },
    "refund held: its receiver is not served, or the token blocks it",
  );
  const set = { due_at: null, held_reason } as const;
  await moveRows(deps.db, "refund", { ids: [id], from: "due", to: "held", at: deps.now(), set });
  return refused;
}

/**
 * Returns `holdRefused` for the refunds of one run. Once no endpoint of a chain has answered, it throws that error for the chain's other
 * refunds at once: each would wait for the endpoints for up to a minute, and refunds on other chains for the job.
 */
export function openHoldRefused(
  deps: Deps,
  forgotten: ForgottenPayouts,
): (refund: DueRefund) => ReturnType<typeof holdRefused> {
  const outages = new Map<string, ChainError>();
  return async (refund) => {
    const chain = chainOf(refund.asset);
    const outage = outages.get(chain);
    if (outage && !wasPaid(forgotten, refund)) throw outage;
    return holdRefused(deps, refund, forgotten).catch((error: unknown) => {
      if (error instanceof ChainError && error.code === "rpc_unreachable") outages.set(chain, error);
      throw error;
    });
  };
}

/** Returns why nothing may be sent to the receiver of a refund, if so. */
async function findRefusal(deps: Deps, { asset, receiver }: DueRefund): Promise<Held | undefined> {
  const account = receiver ?? "";
  const chain = getChain(deps.chains, chainOf(asset));
  if ((await screenAccounts(deps, chain, [account])).size > 0) return "not_served";
  return (await getTransferDriver(chain).isBlockedByIssuer(asset, account)) ? "receiver_blocked" : undefined;
}
