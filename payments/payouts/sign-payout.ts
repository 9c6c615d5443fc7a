import { getAddress, type Hex, hexToBytes } from "viem";
import { parseAssetId } from "../../chains/caip.ts";
import { deriveNonce } from "../../chains/evm/eip3009.ts";
import { getEvmToken } from "../../chains/evm/open-evm-chain.ts";
import type { EvmKeys } from "../../chains/evm/signers/open-evm-keys.ts";
import { getChain, getEvmChain } from "../../chains/open-chains.ts";
import type { NewTransfer } from "../../db/queries/transfers.ts";
import { findTreasuryEpoch } from "../../transfers/caught-up.ts";
import type { Epoch } from "../../transfers/database-epoch.ts";
import { hashRow } from "../../transfers/evm/authorization-calls.ts";
import { newId } from "../ids.ts";
import { type PaymentDeps, REENQUEUE_AFTER_MS } from "../payment-deps.ts";

/**
 * `valid_before` of payouts: the year 2100, in Unix seconds. A payout's authorization never expires. It can move only
 * the amount owed, and only once, so it never has to be signed a second time.
 */
const NEVER_OUT = 4_102_444_800;

export type PayoutDeps = {
  keys: ReadonlyMap<string, EvmKeys>;
  /** When this process started. The watcher's earlier progress may be from before a restore. */
  startedAt: Date;
  /** Detects a rollback of the database to an earlier time. */
  epoch: Epoch;
};

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

/**
 * Returns the parts of a settlement's natural key. The key contains no generated id, because a restored database would
 * generate other ids.
 */
export function settlementKey(of: { merchant_id: string; asset: string; number: number }): string[] {
  return ["settlement", of.merchant_id, of.asset, String(of.number)];
}

/** Returns the nonce of a settlement's payout on chain. */
export function settlementNonce(
  deps: Pick<PaymentDeps, "networks">,
  of: { merchant_id: string; asset: string; number: number },
): string {
  return deriveNonce(deps.networks.deployment, settlementKey(of));
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
 * Returns the transfer of a payout. The treasury signs it and the lanes relay it: an EIP-3009 authorization, or a
 * Disburser call for a token without EIP-3009. In both cases the chain rejects a second transfer with the same nonce.
 * On Solana the transfer is signed when it is sent.
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
    receiver: chain.family === "evm" ? receiver.toLowerCase() : receiver,
    authorization_nonce: deriveNonce(deps.networks.deployment, key),
    valid_before: NEVER_OUT,
    signature: null,
    permit: null,
    lane_id: null,
    lane_nonce: null,
    hold_until: null,
    last_error: null,
    due_at: new Date(deps.now().getTime() + REENQUEUE_AFTER_MS),
  };
  if (token.kind === "spl") return { ...row, kind: "spl" };
  const kind = token.kind === "eip3009" ? "eip3009" : "disburse";
  const signer = deps.keys.get(chain.chain)?.treasury;
  if (!signer) throw new Error(`the treasury of ${chain.chain} has no key`);
  const evm = getEvmChain(deps.chains, chain.chain);
  const addresses = { token: getEvmToken(evm, asset).token, payer: evm.treasury, receiver: getAddress(receiver) };
  const hash = hashRow(evm, { ...row, ...addresses, kind });
  const signature: Hex = await signer.sign({ hash });
  return { ...row, kind, signature: Buffer.from(hexToBytes(signature)) };
}
