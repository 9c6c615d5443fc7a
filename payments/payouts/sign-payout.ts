import { parseAccountId, parseAssetId } from "../../chains/caip.ts";
import { canonicalAddress } from "../../chains/canonical-ids.ts";
import { deriveNonce, settlementKey } from "../../chains/natural-key.ts";
import { getChain, getToken } from "../../chains/open-chains.ts";
import type { NewTransfer } from "../../db/queries/transfers.ts";
import { payoutNonce } from "../../signer/payout-nonce.ts";
import type { PayoutRequest } from "../../signer/protocol.ts";
import type { RefusalReason } from "../../signer/refusals.ts";
import { findTreasuryEpoch } from "../../transfers/caught-up.ts";
import { getTransferDriver } from "../../transfers/find-transfer-driver.ts";
import type { TransferDeps } from "../../transfers/transfer-deps.ts";
import { newId } from "../ids.ts";
import { type PaymentDeps, REENQUEUE_AFTER_MS } from "../payment-deps.ts";
import { requestPayouts } from "./request-payouts.ts";

export type CatchUpDeps = Pick<TransferDeps, "startedAt" | "epoch">;
export type PayoutDeps = Pick<TransferDeps, "startedAt" | "epoch" | "signer">;

/** Money that leaves the treasury: its purpose, and the request that the signer decides on, without deposits. */
export type Payout = {
  of: { purpose: "settlement"; settlement_id: string } | { purpose: "refund"; refund_id: string };
  request: PayoutRequest;
};

type SignedPayout = { ok: true; transfer: NewTransfer };
/** A payout that the signer refuses. It waits, and is asked for again. */
type RefusedPayout = { ok: false; reason: RefusalReason; detail: string };

/**
 * Returns the chains on which the treasury may sign, each with the database epoch that this holds for. After a restore
 * the database may lack transfers that are on chain, so signing waits until the watcher has caught up.
 */
export async function listCaughtUp(
  deps: Pick<PaymentDeps, "db" | "now" | "chains"> & CatchUpDeps,
  chains: readonly string[],
): Promise<Map<string, string>> {
  const caughtUp = new Map<string, string>();
  for (const chain of new Set(chains)) {
    const epoch = await findTreasuryEpoch(deps, chain);
    if (epoch !== undefined) caughtUp.set(chain, epoch);
  }
  return caughtUp;
}

/** Returns the nonce of a settlement's payout on chain. */
export function settlementNonce(
  deps: Pick<PaymentDeps, "networks">,
  { merchant_id: merchantId, asset, number }: { merchant_id: string; asset: string; number: number },
): string {
  return deriveNonce(deps.networks.deployment, settlementKey({ merchantId, asset, number }));
}

/** Splits rows by whether the networks file has their asset. Rows with unknown assets must not block the others. */
export function splitByKnownAsset<Row extends { asset: string }>(
  { chains }: Pick<PaymentDeps, "chains">,
  owed: readonly Row[],
): [known: Row[], unknown: Row[]] {
  const isKnown = ({ asset }: Row) => chains.get(chainOf(asset))?.tokens.has(asset) === true;
  return [owed.filter(isKnown), owed.filter((one) => !isKnown(one))];
}

/** Returns the chain (CAIP-2) of an asset (CAIP-19). */
export function chainOf(asset: string): string {
  return parseAssetId(asset)?.chain ?? asset;
}

/** Returns the address of a destination (CAIP-10) as transfers store it. `chain` is a CAIP-2 or CAIP-19 id. */
export function receiverOf(chain: string, destination: string | null): string {
  return canonicalAddress(chain, parseAccountId(destination ?? "")?.address ?? "");
}

/**
 * Returns the transfers of payouts, signed by the treasury so that any lane relays them, or why the signer refuses them. The
 * chain rejects a second transfer with the same nonce. Returns one result for each payout, in their order.
 */
export async function signPayouts(
  deps: PaymentDeps & PayoutDeps,
  payouts: readonly Payout[],
): Promise<(SignedPayout | RefusedPayout)[]> {
  const wanted = payouts.map(({ of, request }) => ({
    request,
    settlementId: of.purpose === "settlement" ? of.settlement_id : undefined,
  }));
  const results = await requestPayouts(deps, wanted);
  return payouts.map((payout, index) => {
    const result = results[index];
    if (!result) throw new Error("the signer left a payout without a result");
    return result.ok ? { ok: true, transfer: toTransfer(deps, payout, result.signature) } : result;
  });
}

function toTransfer(
  deps: Pick<PaymentDeps, "chains" | "networks" | "now">,
  { of, request }: Payout,
  signature: string | null,
): NewTransfer {
  const { asset, amount, receiver } = request;
  const chain = getChain(deps.chains, chainOf(asset));
  const at = deps.now();
  return {
    id: newId("trf", at),
    payment_id: null,
    settlement_id: null,
    refund_id: null,
    ...of,
    chain: chain.chain,
    asset,
    token: getToken(chain, asset).token,
    payer: chain.treasury,
    amount,
    receiver: canonicalAddress(chain.chain, receiver),
    authorization_nonce: payoutNonce(deps.networks.deployment, request),
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
