import { getAddress, type Hex, hexToBytes } from "viem";
import { parseAssetId } from "../chains/caip.ts";
import { deriveNonce } from "../chains/evm/eip3009.ts";
import { getEvmToken } from "../chains/evm/open.ts";
import type { EvmKeys } from "../chains/evm/signers/open.ts";
import { getChain, getEvmChain } from "../chains/open.ts";
import type { NewTransfer } from "../db/transfers.ts";
import { hashRow } from "../transfers/authorization.ts";
import { findTreasuryEpoch } from "../transfers/caught-up.ts";
import type { Epoch } from "../transfers/epoch.ts";
import { type PaymentDeps, RING_AGAIN_MS } from "./deps.ts";
import { newId } from "./ids.ts";

/**
 * Unix seconds, the year 2100. A payout's authorization does not run out: it can only ever do what is owed, once, and
 * so never has to be signed a second time.
 */
const NEVER_OUT = 4_102_444_800;

export type PayoutDeps = {
  keys: ReadonlyMap<string, EvmKeys>;
  /** When this process began: what the watcher had reached before may be from before a restore. */
  startedAt: Date;
  /** Notices when the database has stepped back in time. */
  epoch: Epoch;
};

/**
 * Money that leaves the treasury: what for, how much (minor units), to which account of the asset's chain, and the words
 * of its natural key, which together with the deployment are the nonce that the chain takes once.
 */
export type Payout = {
  of: { purpose: "settlement"; settlement_id: string } | { purpose: "refund"; refund_id: string };
  asset: string;
  amount: bigint;
  receiver: string;
  key: readonly string[];
};

/**
 * Chains on which the treasury may sign, with the database's epoch in which it may. After a restore the rows may know less
 * than the chain: wait for the watcher.
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

/** The words of a settlement's natural key: nothing in it is an id that a restored database would give anew. */
export function settlementKey(of: { merchant_id: string; asset: string; number: number }): string[] {
  return ["settlement", of.merchant_id, of.asset, String(of.number)];
}

/** The number that a settlement's payout shows on chain. */
export function settlementNonce(
  deps: Pick<PaymentDeps, "networks">,
  of: { merchant_id: string; asset: string; number: number },
): string {
  return deriveNonce(deps.networks.deployment, settlementKey(of));
}

/** Splits what is owed into what the networks file has the asset of, and the rest, which keeps nothing else waiting. */
export function splitKnown<Owed extends { asset: string }>(
  { chains }: Pick<PaymentDeps, "chains">,
  owed: readonly Owed[],
): [known: Owed[], unknown: Owed[]] {
  const isKnown = ({ asset }: Owed) => chains.get(chainOf(asset))?.tokens.has(asset) === true;
  return [owed.filter(isKnown), owed.filter((one) => !isKnown(one))];
}

/** The chain of an asset (CAIP-19). */
export function chainOf(asset: string): string {
  return parseAssetId(asset)?.chain ?? asset;
}

/**
 * Returns the transfer of a payout, which the treasury signs and relayers carry: an EIP-3009 authorization, or what the
 * Disburser takes for a token without EIP-3009. The chain refuses a second one with its nonce either way. On Solana it is
 * signed when it is sent.
 */
export async function signPayout(deps: PaymentDeps & PayoutDeps, payout: Payout): Promise<NewTransfer> {
  const { of, asset, amount, receiver, key } = payout;
  const chain = getChain(deps.chains, chainOf(asset));
  const token = chain.tokens.get(asset);
  if (!token) throw new Error(`${asset} of ${key.join(" ")} is not in the networks file`);
  const row = {
    ...{ id: newId("trf"), payment_id: null, settlement_id: null, refund_id: null, ...of },
    ...{ chain: chain.chain, asset, token: token.token, payer: chain.treasury, amount },
    receiver: chain.family === "evm" ? receiver.toLowerCase() : receiver,
    authorization_nonce: deriveNonce(deps.networks.deployment, key),
    valid_before: NEVER_OUT,
    ...{ signature: null, permit: null },
    ...{ lane_id: null, lane_nonce: null, hold_until: null, last_trouble: null },
    due_at: new Date(deps.now().getTime() + RING_AGAIN_MS),
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
