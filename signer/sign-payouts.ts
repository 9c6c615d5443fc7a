import { ChainError } from "../chains/errors.ts";
import { getChainDriver } from "../chains/find-chain-driver.ts";
import { chainOfAsset, type PayoutWithNonce } from "./payout-nonce.ts";
import type { PayoutResult } from "./protocol.ts";
import { refuse } from "./refuse.ts";
import type { SignerDeps } from "./signer-deps.ts";

type Deps = Pick<SignerDeps, "treasuryKeys" | "log">;

/** Signs payouts that are authorized, with the treasury's keys. Returns one result for each, in their order. */
export function signAuthorized(deps: Deps, payouts: readonly PayoutWithNonce[]): Promise<PayoutResult[]> {
  return Promise.all(payouts.map((payout) => signOne(deps, payout)));
}

async function signOne(deps: Deps, { asset, amount, receiver, nonce }: PayoutWithNonce): Promise<PayoutResult> {
  const chain = chainOfAsset(asset);
  // Authorized now, and signed with the transaction that makes it.
  if (!getChainDriver(chain).signsPayouts) return { ok: true, signature: null };
  const key = deps.treasuryKeys.get(chain);
  if (!key) return refuse("signer_unavailable", `the treasury's key of ${chain} is not open`);
  try {
    return { ok: true, signature: await key.sign({ asset, amount, receiver, nonce }) };
  } catch (err) {
    deps.log.error({ err, chain }, "a payout cannot be signed");
    if (err instanceof ChainError) return refuse("signer_unavailable", err.message);
    // An address that cannot be parsed, for example: the other payouts go on.
    return refuse("invalid_request");
  }
}
