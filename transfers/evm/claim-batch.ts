import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import type { Signer } from "../../chains/evm/signers/signer.ts";
import type { EvmKind } from "../../db/chain-families.ts";
import { claimReady, listClaimable } from "../../db/queries/claim-transfers.ts";
import type { LaneWork } from "../../db/queries/lane-work.ts";
import type { LaneLease } from "../../db/queries/lanes.ts";
import type { EvmTransferRow } from "../../db/queries/transfers.ts";
import type { SendHandlers } from "../booking-handlers.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { MAX_INCLUSIONS, mustSendAlone, readGasRules } from "./gas-limits.ts";
import { maxBatchSize } from "./lane-capacity.ts";
import { hasWalletLane } from "./lane-signers.ts";

/**
 * Lanes that relay the same transfers. `takes` says whose transfers they take. A lane that plain keys share with contract
 * wallets takes those of plain keys first.
 */
export type Pool = {
  signers: readonly Signer[];
  takes: "keys" | "wallets" | "keys, then wallets";
  handlers: SendHandlers;
};

/** A lane that this worker holds, its signer, and its pool. */
export type Lane = Pool & { lease: LaneLease; signer: Signer };

/** Kinds of transfers that any account can submit, because the payer or the treasury has signed an authorization. */
export const RELAYED: readonly EvmKind[] = ["eip3009", "permit2", "disburse"];

/**
 * Claims the transfers of the lane's next batch, up to the largest batch of the chain. `ready` and `hasWallets` say which
 * groups have ready transfers, so that no statement claims from an empty one. `hasBurners` says whether a payer who waits may be
 * barred, so that the gas limits are read only then. While payments share no transactions, nothing shows whether an account can pay
 * several of them, so each payer has one in flight.
 */
export async function claimBatch(
  deps: TransferDeps,
  chain: EvmChain,
  lane: Lane,
  work: Pick<LaneWork, "ready" | "hasWallets" | "hasBurners" | "sharedBurned">,
): Promise<EvmTransferRow[]> {
  const { ready, hasWallets } = work;
  const ofKeys = lane.takes === "wallets" || ready === 0 ? [] : await claimKeys(deps, chain, lane, work);
  return ofKeys.length > 0 || lane.takes === "keys" || !hasWallets ? ofKeys : claimWallet(deps, chain, lane);
}

async function claimKeys(
  deps: TransferDeps,
  chain: EvmChain,
  { lease, signers }: Lane,
  { hasBurners, sharedBurned }: Pick<LaneWork, "hasBurners" | "sharedBurned">,
): Promise<EvmTransferRow[]> {
  const barred = hasBurners ? [...(await readGasRules(deps, chain, { forLane: false })).barred] : [];
  const oneEach = mustSendAlone(chain, sharedBurned);
  const limits = { limit: maxBatchSize(chain), mostInclusions: MAX_INCLUSIONS, barred, oneEach };
  const claim = signers.length === 1 ? listClaimable : claimReady;
  return claim(deps.db, { chain: chain.chain, laneId: lease.id, kinds: RELAYED, now: deps.now(), ...limits });
}

/**
 * Claims one transfer of a contract wallet if the gas limits allow another one. Transactions in flight count as burned until
 * their outcome is known.
 */
async function claimWallet(deps: TransferDeps, chain: EvmChain, { lease }: Lane): Promise<EvmTransferRow[]> {
  const rules = await readGasRules(deps, chain, { forLane: true });
  if (rules.exhausted) return [];
  if (!hasWalletLane(chain) && rules.busy.size > 0) return [];
  const wallets = { payers: [...rules.barred, ...rules.busy], codes: [...rules.codes] };
  const limits = { limit: 1, mostInclusions: MAX_INCLUSIONS, wallets };
  return claimReady(deps.db, { chain: chain.chain, laneId: lease.id, kinds: RELAYED, now: deps.now(), ...limits });
}
