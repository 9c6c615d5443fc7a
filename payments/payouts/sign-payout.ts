import { parseAssetId } from "../../chains/caip.ts";
import { canonicalAddress } from "../../chains/canonical-ids.ts";
import { deriveNonce, settlementKey } from "../../chains/natural-key.ts";
import { getChain } from "../../chains/open-chains.ts";
import type { NewTransfer } from "../../db/queries/transfers.ts";
import { findTreasuryEpoch } from "../../transfers/caught-up.ts";
import type { TransferDeps } from "../../transfers/transfer-deps.ts";
import { getTransferDriver } from "../../transfers/transfer-driver.ts";
import { newId } from "../ids.ts";
import { type PaymentDeps, REENQUEUE_AFTER_MS } from "../payment-deps.ts";

export type PayoutDeps = Pick<TransferDeps, "keys" | "startedAt" | "epoch">;

/**
 * Money that leaves the treasury: its purpose, amount (minor units), receiver on the asset's chain, and the parts of
 * its natural key. The nonce, which the chain accepts once, is derived from the key and the deployment.
 */
export type Payout = {
  of: { purpose: "settlement"; settlement_id: string } | { purpose: "refund"; refund_id: string };
  asset: string;
  amount: bigint;
  receiver: string;
  key: readonly string[];
};

/**
 * Returns the chains on which the treasury may sign, each with the database epoch that this holds for. After a restore
 * the database may lack transfers that are on chain, so signing waits until the watcher has caught up.
 */
export async function listCaughtUp(
  deps: Pick<PaymentDeps, "db" | "now" | "chains"> & PayoutDeps,
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

/**
 * Returns the transfer of a payout. The treasury signs it where anybody can submit it, so that any lane relays it. The chain
 * rejects a second transfer with the same nonce.
 */
export async function signPayout(deps: PaymentDeps & PayoutDeps, payout: Payout): Promise<NewTransfer> {
  const { of, asset, amount, receiver, key } = payout;
  const chain = getChain(deps.chains, chainOf(asset));
  const token = chain.tokens.get(asset);
  if (!token) throw new Error(`asset ${asset} of ${key.join(" ")} is not in the networks file`);
  const row = {
    id: newId("trf"),
    payment_id: null,
    settlement_id: null,
    refund_id: null,
    ...of,
    chain: chain.chain,
    asset,
    token: token.token,
    payer: chain.treasury,
    amount,
    receiver: canonicalAddress(chain.chain, receiver),
    authorization_nonce: deriveNonce(deps.networks.deployment, key),
    permit: null,
    lane_id: null,
    lane_nonce: null,
    hold_until: null,
    last_error: null,
    due_at: new Date(deps.now().getTime() + REENQUEUE_AFTER_MS),
  };
  return { ...row, ...(await getTransferDriver(chain).signPayout(deps, row)) };
}
