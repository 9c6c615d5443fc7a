import type { Hex } from "viem";
import { ChainError } from "../../chains/errors.ts";
import { broadcastBytes } from "../../chains/evm/evm-broadcast.ts";
import { toFeeMembers } from "../../chains/evm/fee-members.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import type { Signer } from "../../chains/evm/signers/signer.ts";
import { keccak256 } from "../../chains/keccak256.ts";
import { getEvmChain } from "../../chains/open-chains.ts";
import type { EvmKind } from "../../db/chain-families.ts";
import { commitIfOk } from "../../db/in-transaction.ts";
import { claimReady, listClaimable } from "../../db/queries/claim-transfers.ts";
import { type LaneWork, readLaneWork } from "../../db/queries/lane-work.ts";
import { freeLane, type LaneLease, releaseLane, takeLane, useNonce, wakeLanes } from "../../db/queries/lanes.ts";
import { insertTransaction, type TransactionKey } from "../../db/queries/transactions.ts";
import { assignTransfers, type EvmTransferRow } from "../../db/queries/transfers.ts";
import type { SendHandlers } from "../booking-handlers.ts";
import { traceTransfers } from "../trace-transfers.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { listCalls } from "./authorization-calls.ts";
import { dryRunBatch, holdUnprocessable, type RowMember } from "./dry-run.ts";
import { formingMs, lastSendMs, noteSendTime, waitForInclusion } from "./forming-batches.ts";
import { chooseFees, type Fees } from "./gas-fees.ts";
import { MAX_INCLUSIONS, readGasRules } from "./gas-limits.ts";
import { LEASE_MS, maxBatchSize, wakeOwners } from "./lane-capacity.ts";
import { readSpendable, spendGas } from "./lane-funds.ts";
import { hasWalletLane, listLaneSigners } from "./lane-signers.ts";
import { buildPayload, pickBatch, sumGas } from "./multicall-batch.ts";
import { type Price, priceTransaction, sumCosts } from "./price-transaction.ts";
import { storeBroadcastResult } from "./store-broadcast-result.ts";
import { gasOf } from "./transfer-gas.ts";

/** Transactions that one run sends before it releases the lane, so that jobs end and the process can run others. */
const MAX_SENT = 20;

/**
 * Lanes that relay the same transfers. `takes` says whose transfers they take. A lane that plain keys share with contract
 * wallets takes those of plain keys first.
 */
type Pool = { signers: readonly Signer[]; takes: "keys" | "wallets" | "keys, then wallets"; handlers: SendHandlers };

/** Kinds of transfers that any account can submit, because the payer or the treasury has signed an authorization. */
const RELAYED: readonly EvmKind[] = ["eip3009", "permit2", "disburse"];

/**
 * Relays the ready transfers of a chain, except those of contract wallets, unless the lanes in use can send all of them. Returns
 * `more` when the run ended early and another one should follow.
 */
export async function relayReady(
  deps: TransferDeps,
  chainId: string,
  handlers: SendHandlers,
): Promise<"idle" | "more"> {
  const chain = getEvmChain(deps.chains, chainId);
  const { relayers } = listLaneSigners(deps, chain);
  if (relayers.length === 0) return "idle";
  // With a single lane, whether another worker holds it shows when it is taken.
  if (relayers.length > 1 && (await wakeOwners(deps, chain, "lanes"))) return "idle";
  const takes = hasWalletLane(chain) ? "keys" : "keys, then wallets";
  return drivePool(deps, chain, { signers: relayers, takes, handlers });
}

/**
 * Relays the ready transfers of contract wallets on a chain through their own lane, each in a transaction of its own. On a
 * chain with a single lane, they go one at a time and after all others.
 */
export async function relayWallets(
  deps: TransferDeps,
  chainId: string,
  handlers: SendHandlers,
): Promise<"idle" | "more"> {
  const chain = getEvmChain(deps.chains, chainId);
  const { wallets } = listLaneSigners(deps, chain);
  if (wallets.length === 0) return "idle";
  const takes = hasWalletLane(chain) ? "wallets" : "keys, then wallets";
  return drivePool(deps, chain, { signers: wallets, takes, handlers });
}

/**
 * Takes a free lane, sends batches until no transfer is ready, and releases the lane. When a lane can send nothing now, tries
 * the next one. When other workers hold all lanes, requests a wake-up of the lanes, and one of these workers relays the
 * transfers. When a lane's key cannot sign, the other lanes send, and the error is thrown after that.
 */
async function drivePool(deps: TransferDeps, chain: EvmChain, pool: Pool): Promise<"idle" | "more"> {
  const failed: ChainError[] = [];
  const end = await driveEach(deps, chain, pool, failed);
  if (failed[0]) throw failed[0];
  return end;
}

async function driveEach(
  deps: TransferDeps,
  chain: EvmChain,
  pool: Pool,
  failed: ChainError[],
): Promise<"idle" | "more"> {
  const signers = new Map<string, Signer>(pool.signers.map((signer) => [signer.address, signer]));
  const all = [...signers.keys()];
  for (;;) {
    const untried = [...signers.keys()];
    const wanted = { chain: chain.chain, addresses: untried, owner: deps.owner, leaseMs: LEASE_MS };
    const lease = await takeLane(deps.db, wanted);
    const signer = lease && signers.get(lease.address);
    if (lease && signer) {
      const end = await driveLane(deps, chain, { lease, signer, ...pool }).catch((error: unknown) => {
        if (!isSignerError(error)) throw error;
        failed.push(error);
        return "blocked" as const;
      });
      if (end !== "blocked") return end;
      signers.delete(lease.address);
    } else if (untried.length === 0 || (await wakeLanes(deps.db, { chain: chain.chain, addresses: all })))
      return "idle";
    // A lane may have become free between the two statements. Try again, unless some lanes were already tried.
    else if (signers.size < all.length) return "idle";
  }
}

const isSignerError = (error: unknown): error is ChainError =>
  error instanceof ChainError && (error.code === "signer_unavailable" || error.code === "signer_refused");

/** A lane that this worker holds, its signer, and its pool. */
type Lane = Pool & { lease: LaneLease; signer: Signer };

/** Sends the batches of one lane. Returns `blocked` when transfers may be ready and this lane can send no more now. */
async function driveLane(deps: TransferDeps, chain: EvmChain, lane: Lane): Promise<"idle" | "blocked" | "more"> {
  const { lease } = lane;
  // A batch forms once, so that a clock that stands still or steps back cannot hold it.
  let mayForm = true;
  try {
    for (let sent = 0; sent < MAX_SENT; ) {
      const began = performance.now();
      const result = await sendBatch(deps, chain, lane, mayForm);
      mayForm = typeof result !== "object";
      if (result === "sent") {
        sent += 1;
        noteSendTime(chain, performance.now() - began);
      } else if (typeof result === "object") await waitForInclusion(chain, result.waitMs);
      else if (result === "short") {
        // A requested wake brings no gas, and other lanes cannot take the transfers that this one has claimed.
        await freeLane(deps.db, lease);
        return "blocked";
      } else if ((await releaseLane(deps.db, lease)) !== "wake_requested") return result;
    }
  } catch (error) {
    // The watcher broadcasts transactions that are stored. Transfers of a batch that is not stored are still ready.
    await freeLane(deps.db, lease).catch(() => undefined);
    throw error;
  }
  await freeLane(deps.db, lease);
  return "more";
}

/**
 * Sends one transaction of a lane, for the transfers that it may send next. Returns `waitMs` while the batch forms, also when
 * none of its transfers is ready yet: the lane is kept, so that those that become ready need no job. Returns `short` when the
 * lane cannot pay for all of them, whether it has sent some or none.
 */
async function sendBatch(
  deps: TransferDeps,
  chain: EvmChain,
  lane: Lane,
  mayForm: boolean,
): Promise<"sent" | "idle" | "blocked" | "short" | { waitMs: number }> {
  const { lease } = lane;
  const most = maxBatchSize(chain);
  const wanted = { chain: chain.chain, kinds: RELAYED, now: deps.now(), limit: most };
  const work = await readLaneWork(deps.db, { ...wanted, laneId: lease.id, nonce: lease.next_nonce });
  // A transaction without a response may not have reached any node. Later nonces cannot be included before it.
  if (work.taken >= chain.network.laneWindow || work.unanswered > 0) return "blocked";
  const { newest, baseFee } = work;
  const forming = { newest, sendMs: lastSendMs(chain), now: deps.now() };
  const waitMs = lane.takes === "wallets" || !mayForm ? 0 : formingMs(chain.network, forming);
  const isWalletNext = work.ready === 0 && work.hasWallets && lane.takes !== "keys";
  if (waitMs > 0 && work.ready < most && !isWalletNext) return { waitMs };
  // Above the ceiling, the transfers are not even claimed.
  if (baseFee === null || !chooseFees(baseFee, chain.network.fees)) return "blocked";
  const ready = await claimNext(deps, chain, lane, work);
  if (ready.length === 0) return "idle";
  const of = { chain: chain.chain, transfers: ready };
  return traceTransfers(deps, "relay", of, () => sendReady(deps, chain, lane, { ready, baseFee, work }));
}

/** Sends one transaction for claimed transfers: picks a batch of them, simulates, signs, stores and broadcasts it. */
async function sendReady(
  deps: TransferDeps,
  chain: EvmChain,
  lane: Lane,
  { ready, baseFee, work }: { ready: readonly EvmTransferRow[]; baseFee: bigint; work: LaneWork },
): Promise<"sent" | "blocked" | "short"> {
  const { lease, signer } = lane;
  const members: RowMember[] = [];
  for (const row of ready) {
    try {
      members.push({
        row,
        alone: row.alone || row.smart_wallet,
        gas: gasOf(chain, row),
        calls: listCalls(chain, row),
      });
    } catch (error) {
      await holdUnprocessable(deps, row, error);
    }
  }
  const batch = pickBatch(members, chain.network.batchGas);
  if (batch.length === 0) return "sent";
  const price = await priceBatch(deps, chain, { batch, baseFee });
  if (!price) return "blocked";
  const nonce = lease.next_nonce;
  const costsOf = (some: readonly RowMember[]) => sumCosts(price, sumGas(some) + price.extraGas, work);
  // What is sent costs at most as much as the whole batch.
  const most = costsOf(batch);
  const [passed, spendable = most.cost] = await Promise.all([
    dryRunBatch(deps, chain, { ...lane, price }, batch),
    readSpendable(deps, chain, lease, most),
  ]);
  // The transfers that failed are held now, so the next batch has others or none.
  if (passed.length === 0) return "sent";

  // A lane with little gas sends what it can pay for: without another lane, all transfers would wait until it has more.
  let good = passed;
  while (good.length > 0 && costsOf(good).cost > spendable) good = good.slice(0, -1);
  if (good.length === 0) return "short";
  spendGas(chain, lease, costsOf(good).cost);
  const { to, data, gas: limit } = buildPayload(chain.multicall, good);
  const [gas, { fees }] = [limit + price.extraGas, price];
  const { chainId } = chain;
  const offered = toFeeMembers(chain.network.feeModel, fees);
  const bytes = await signer.signTransaction({ chainId, nonce, to, data, gas, ...offered });
  const key: TransactionKey = { lane_id: lease.id, nonce, replacement: work.replacement };
  if (!(await store(deps, chain, lease, { key, bytes, gas, fees, rows: good.map(({ row }) => row) }))) return "blocked";
  lease.next_nonce = nonce + 1;
  deps.metrics.batchSize.observe({ chain: chain.chain }, good.length);
  const broadcast = await broadcastBytes(chain.rpc, bytes);
  await storeBroadcastResult(deps, chain, key, broadcast);
  if (broadcast.outcome !== "accepted") return "blocked";
  return good.length < passed.length ? "short" : "sent";
}

/** Returns the price of a batch. The batch waits while the chain's charges exceed the ceiling. */
async function priceBatch(
  deps: TransferDeps,
  chain: EvmChain,
  { batch, baseFee }: { batch: readonly RowMember[]; baseFee: bigint },
): Promise<Price | undefined> {
  const price = await priceTransaction(chain, buildPayload(chain.multicall, batch), baseFee);
  if (!price)
    deps.log.warn(
      { chain: chain.chain, ceiling: String(chain.network.fees.maxFeePerGas) },
      "transfers wait because a transaction with all its charges would exceed fees.maxFeePerGas",
    );
  return price;
}

/** Claims the transfers of the lane's next batch. Claims none of a group of which none is ready. */
async function claimNext(
  deps: TransferDeps,
  chain: EvmChain,
  lane: Lane,
  { ready, hasWallets }: Pick<LaneWork, "ready" | "hasWallets">,
): Promise<EvmTransferRow[]> {
  const ofKeys = lane.takes === "wallets" || ready === 0 ? [] : await claimKeys(deps, chain, lane);
  return ofKeys.length > 0 || lane.takes === "keys" || !hasWallets ? ofKeys : claimWallet(deps, chain, lane);
}

function claimKeys(deps: TransferDeps, chain: EvmChain, { lease, signers }: Lane): Promise<EvmTransferRow[]> {
  const limits = { limit: maxBatchSize(chain), mostInclusions: MAX_INCLUSIONS, wallets: undefined };
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

type Signing = {
  key: TransactionKey;
  bytes: Hex;
  gas: bigint;
  fees: Fees;
  rows: readonly EvmTransferRow[];
};

/**
 * Uses the nonce, stores the bytes and assigns the transfers in one database transaction. Returns false when this worker no
 * longer holds the lane or one of the transfers, or when one of them has changed.
 */
async function store(
  deps: TransferDeps,
  chain: EvmChain,
  lease: LaneLease,
  { key, bytes: signed, gas, fees, rows }: Signing,
): Promise<boolean> {
  const now = deps.now();
  const bytes = Buffer.from(signed.slice(2), "hex");
  const stored = await commitIfOk(deps.db, async (db) => {
    const ours = await useNonce(db, lease, { nonce: key.nonce, leaseMs: LEASE_MS });
    if (!ours) return { ok: false };
    await insertTransaction(db, {
      ...key,
      chain: chain.chain,
      hash: keccak256(bytes),
      bytes,
      gas_limit: gas,
      max_fee_per_gas: fees.maxFeePerGas,
      max_priority_fee_per_gas: fees.maxPriorityFeePerGas,
      state: "signed",
      created_at: now,
      broadcast_at: null,
      block_number: null,
      block_id: null,
      gas_used: null,
      gas_price: null,
      fee: null,
      reverted: null,
    });
    const assigned = await assignTransfers(db, { calls: rows, laneId: key.lane_id, nonce: key.nonce, at: now });
    return { ok: assigned.length === rows.length };
  });
  if (!stored.ok) return false;
  for (const { purpose } of rows)
    deps.metrics.transferTransitions.inc({ chain: chain.chain, purpose, from: "ready", to: "assigned" });
  return true;
}
