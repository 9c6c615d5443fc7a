import { ChainError } from "../chains/errors.ts";
import { getChainDriver } from "../chains/find-chain-driver.ts";
import { chainOfAsset, payoutNonce } from "./payout-nonce.ts";
import type { PayoutRequest, PayoutResult } from "./protocol.ts";
import { refuse } from "./refuse.ts";
import type { SignerDeps } from "./signer-deps.ts";

/** Signs payouts that are authorized, with the treasury's keys. Returns one result for each, in their order. */
export function signAuthorized(
  deps: Pick<SignerDeps, "treasuryKeys" | "deployment" | "log">,
  payouts: readonly PayoutRequest[],
): Promise<PayoutResult[]> {
  return Promise.all(payouts.map((payout) => signOne(deps, payout)));
}

async function signOne(
  deps: Pick<SignerDeps, "treasuryKeys" | "deployment" | "log">,
  payout: PayoutRequest,
): Promise<PayoutResult> {
  const { asset, amount, receiver } = payout;
  const chain = chainOfAsset(asset);
  // Authorized now, and signed with the transaction that makes it.
  if (!getChainDriver(chain).signsPayouts) return { ok: true, signature: null };
  const key = deps.treasuryKeys.get(chain);
  if (!key) return refuse("signer_unavailable", `the treasury's key of ${chain} is not open`);
  try {
    const nonce = payoutNonce(deps.deployment, payout);
    return { ok: true, signature: await key.sign({ asset, amount, receiver, nonce }) };
  } catch (err) {
    deps.log.error({ err, chain }, "a payout cannot be signed");
    if (err instanceof ChainError) return refuse("signer_unavailable", err.message);
    // An address that cannot be parsed, for example: the other payouts go on.
    return refuse("invalid_request");
  }
}
