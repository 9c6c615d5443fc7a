import { type Hex, hexToBytes, keccak256 } from "viem";
import type { EvmChain } from "../chains/evm/open.ts";
import { type Offer, offerBytes } from "../chains/evm/send.ts";
import type { Signer } from "../chains/evm/signers/signer.ts";
import { getEvmChain } from "../chains/open.ts";
import { findBaseFee } from "../db/cursors.ts";
import { freeLane, type LaneLease, releaseLane, ringLanes, takeLane, useNonce } from "../db/lanes.ts";
import type { Kind } from "../db/tables.ts";
import {
  countUnincluded,
  insertTransaction,
  nextReplacement,
  noteOffer,
  type TransactionKey,
} from "../db/transactions.ts";
import { carryTransfers, claimReady, type TransferRow } from "../db/transfers.ts";
import { listCalls } from "./authorization.ts";
import { buildPayload, pickBatch } from "./batch.ts";
import type { SendBooks } from "./books.ts";
import type { TransferDeps } from "./deps.ts";
import { dropFailing, holdFailed, type RowMember } from "./dry-run.ts";
import { chooseFees } from "./fees.ts";
import { MOST_INCLUSIONS, readGasRules } from "./gas-limits.ts";
import { canPay, forgetFunds } from "./lane-funds.ts";
import { skipUsed } from "./lane-nonce.ts";
import { hasWalletLane, listLaneSigners } from "./lane-signers.ts";
import { gasOf } from "./transfer-gas.ts";

/** A lane is somebody else's when its owner has not been heard of for this long, milliseconds. */
const LEASE_MS = 5_000;
/**
 * After a transaction that took all that was ready, a lane waits so long for company before its next one, milliseconds:
 * under load, transfers share gas, blocks and calls instead of going two by two. The first one never waits.
 */
const COMPANY_MS = 100;
/** Transactions one run sends before it lets go of the lane, so that jobs end and other work of the process goes on. */
const RUN_LENGTH = 20;

/**
 * Lanes that carry the same transfers: any of them may take any. `takes`: whose. A lane that plain keys share with
 * contract wallets takes theirs first.
 */
type Pool = { signers: readonly Signer[]; takes: "keys" | "wallets" | "keys, then wallets"; books: SendBooks };

/** What any account may submit: what its payer, or the treasury, has signed. */
const RELAYED: readonly Kind[] = ["eip3009", "permit2", "disburse"];

/**
 * Carries what is ready on a chain, but for contract wallets. `more` says that this run has been long enough and another
 * one should follow.
 */
export async function relayReady(deps: TransferDeps, chainId: string, books: SendBooks): Promise<"idle" | "more"> {
  const chain = getEvmChain(deps.chains, chainId);
  const { relayers } = listLaneSigners(deps, chain);
  if (relayers.length === 0) return "idle";
  const takes = hasWalletLane(chain) ? "keys" : "keys, then wallets";
  return drivePool(deps, chain, { signers: relayers, takes, books });
}

/**
 * Carries what is ready of contract wallets on a chain, through their own lane, each by itself. Where they have to share
 * the only lane, one at a time, and after everything else.
 */
export async function relayWallets(deps: TransferDeps, chainId: string, books: SendBooks): Promise<"idle" | "more"> {
  const chain = getEvmChain(deps.chains, chainId);
  const { wallets } = listLaneSigners(deps, chain);
  if (wallets.length === 0) return "idle";
  const takes = hasWalletLane(chain) ? "wallets" : "keys, then wallets";
  return drivePool(deps, chain, { signers: wallets, takes, books });
}

/**
 * Takes a free lane, sends batches until nothing is ready, lets go. A lane that can send nothing now leaves the work to
 * the next one. When all lanes are in other hands, their holders are told, and one of them carries it.
 */
async function drivePool(deps: TransferDeps, chain: EvmChain, pool: Pool): Promise<"idle" | "more"> {
  const signers = new Map(pool.signers.map((signer) => [signer.address as string, signer]));
  const all = [...signers.keys()];
  for (;;) {
    const untried = [...signers.keys()];
    const wanted = { chain: chain.chain, addresses: untried, owner: deps.owner, leaseMs: LEASE_MS };
    const lease = await takeLane(deps.db, wanted);
    const signer = lease && signers.get(lease.address);
    if (lease && signer) {
      const end = await driveLane(deps, chain, { lease, signer, ...pool });
      if (end !== "blocked") return end;
      signers.delete(lease.address);
    } else if (untried.length === 0 || (await ringLanes(deps.db, { chain: chain.chain, addresses: all })))
      return "idle";
    // Between the two statements a lane may have come free: then ask again, unless all that is left was tried.
    else if (signers.size < all.length) return "idle";
  }
}

/** A lane in our hands, who signs for it, and what it carries. */
type Lane = Pool & { lease: LaneLease; signer: Signer };

/** `blocked`: there may be work, and this lane can send nothing now. */
async function driveLane(deps: TransferDeps, chain: EvmChain, lane: Lane): Promise<"idle" | "blocked" | "more"> {
  const { lease } = lane;
  try {
    for (let sent = 0; sent < RUN_LENGTH; ) {
      const went = await carryBatch(deps, chain, lane);
      if (went === "sent all") await new Promise((resolve) => setTimeout(resolve, COMPANY_MS));
      if (went === "sent" || went === "sent all") sent += 1;
      else if ((await releaseLane(deps.db, lease)) !== "rung") return went;
    }
  } catch (error) {
    // Whatever was stored will be offered by the watcher; whatever was not is still ready.
    await freeLane(deps.db, lease).catch(() => undefined);
    throw error;
  }
  await freeLane(deps.db, lease);
  return "more";
}

/** One transaction of a lane: pick, simulate, sign, store, send. `sent all`: nothing that was ready is left. */
async function carryBatch(
  deps: TransferDeps,
  chain: EvmChain,
  lane: Lane,
): Promise<"sent" | "sent all" | "idle" | "blocked"> {
  const { lease, signer } = lane;
  const flying = await countUnincluded(deps.db, lease.id);
  // Nobody knows whether an unanswered offer is on its way: piling more on top of it would not make it arrive.
  if (flying.taken >= chain.network.laneWindow || flying.unanswered > 0) return "blocked";
  const baseFee = await findBaseFee(deps.db, chain.chain);
  const fees = baseFee === undefined ? undefined : chooseFees(baseFee, chain.network.fees);
  if (!fees) return "blocked";
  let ready = lane.takes === "wallets" ? [] : await claimKeys(deps, chain, lane);
  if (ready.length === 0 && lane.takes !== "keys") ready = await claimWallet(deps, chain, lane);
  if (ready.length === 0) return "idle";

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
      await holdFailed(deps, row, error);
    }
  }
  const good = await dropFailing(deps, chain, { ...lane, fees }, pickBatch(members, chain.network.batchGas));
  // What failed is on hold now, so the next look finds something else, or nothing.
  if (good.length === 0) return "sent";

  const payload = buildPayload(chain.multicall, good);
  const cost = payload.gas * fees.maxFeePerGas;
  if (!(await canPay(deps, chain, lease, { cost, inFlight: flying.cost }))) return "blocked";
  const nonce = lease.nextNonce;
  const bytes = await signer.signTransaction({ type: "eip1559", chainId: chain.chainId, nonce, ...payload, ...fees });
  const key: TransactionKey = {
    lane_id: lease.id,
    nonce,
    replacement: await nextReplacement(deps.db, { lane_id: lease.id, nonce }),
  };
  if (!(await store(deps, chain, lease, { key, bytes, gas: payload.gas, fees, rows: good.map(({ row }) => row) })))
    return "blocked";
  lease.nextNonce = nonce + 1;
  deps.metrics.batchSize.observe({ chain: chain.chain }, good.length);
  const offer = await offerBytes(chain.rpc, bytes);
  await noteAnswer(deps, chain, key, offer);
  if (offer.outcome !== "accepted") return "blocked";
  return good.length === ready.length ? "sent all" : "sent";
}

function claimKeys(deps: TransferDeps, chain: EvmChain, { lease }: Lane): Promise<TransferRow[]> {
  const limits = { limit: mostMembers(chain), mostInclusions: MOST_INCLUSIONS, wallets: undefined };
  return claimReady(deps.db, { chain: chain.chain, laneId: lease.id, kinds: RELAYED, now: deps.now(), ...limits });
}

/**
 * One transfer of a contract wallet, if the gas limits let another one be sent: what is in flight counts as burned until
 * it is known not to be.
 */
async function claimWallet(deps: TransferDeps, chain: EvmChain, { lease }: Lane): Promise<TransferRow[]> {
  const rules = await readGasRules(deps, chain, { forLane: true });
  if (rules.exhausted) return [];
  if (!hasWalletLane(chain) && rules.busy.size > 0) return [];
  const wallets = { payers: [...rules.barred, ...rules.busy], codes: [...rules.codes] };
  const limits = { limit: 1, mostInclusions: MOST_INCLUSIONS, wallets };
  return claimReady(deps.db, { chain: chain.chain, laneId: lease.id, kinds: RELAYED, now: deps.now(), ...limits });
}

type Signing = {
  key: TransactionKey;
  bytes: Hex;
  gas: bigint;
  fees: { maxFeePerGas: bigint; maxPriorityFeePerGas: bigint };
  rows: readonly TransferRow[];
};

/** Thrown to undo a store that somebody else has overtaken. */
class Overtaken extends Error {
  override readonly name = "Overtaken";
}

/** Nonce, bytes and transfers in one transaction; false when the lane or a transfer is no longer ours to use. */
async function store(
  deps: TransferDeps,
  chain: EvmChain,
  lease: LaneLease,
  { key, bytes, gas, fees, rows }: Signing,
): Promise<boolean> {
  const now = deps.now();
  const ids = rows.map((row) => row.id);
  try {
    await deps.db.transaction().execute(async (db) => {
      const ours = await useNonce(db, lease, { nonce: key.nonce, leaseMs: LEASE_MS });
      if (!ours) throw new Overtaken();
      await insertTransaction(db, {
        ...key,
        chain: chain.chain,
        hash: keccak256(bytes),
        bytes: Buffer.from(hexToBytes(bytes)),
        gas_limit: gas,
        max_fee_per_gas: fees.maxFeePerGas,
        max_priority_fee_per_gas: fees.maxPriorityFeePerGas,
        state: "signed",
        created_at: now,
        offered_at: null,
        block_number: null,
        block_hash: null,
        gas_used: null,
        gas_price: null,
        fee: null,
        reverted: null,
      });
      const carried = await carryTransfers(db, { ids, laneId: key.lane_id, nonce: key.nonce, at: now });
      if (carried.length !== ids.length) throw new Overtaken();
    });
  } catch (error) {
    if (error instanceof Overtaken) return false;
    throw error;
  }
  for (const { purpose } of rows)
    deps.metrics.transferMoves.inc({ chain: chain.chain, purpose, from: "ready", to: "carried" });
  return true;
}

/** Writes down what an offer came to. Shared with the watcher, which offers again. */
export async function noteAnswer(
  deps: TransferDeps,
  chain: EvmChain,
  key: TransactionKey,
  offer: Offer,
): Promise<void> {
  const state = offer.outcome === "accepted" ? "accepted" : "offered";
  deps.metrics.transactions.inc({ chain: chain.chain, state: offer.outcome });
  await noteOffer(deps.db, key, { state, at: deps.now() });
  if (offer.outcome === "accepted") return;
  deps.log.warn(
    { chain: chain.chain, lane: key.lane_id, nonce: key.nonce, outcome: offer.outcome, reason: offer.reason },
    "an offer was not accepted",
  );
  if (offer.outcome === "no_gas_money") forgetFunds(chain, key.lane_id);
  if (offer.outcome !== "nonce_too_low") return;
  // Either these bytes (or a twin of theirs) are in a block already, or somebody else uses the key. The watcher finds
  // out which; here it only matters that no further nonce is wasted.
  await skipUsed(deps, chain, key);
}

/** As many transfers as could share one transaction: a lane claims no more than it can carry next. */
function mostMembers(chain: EvmChain): number {
  const least = Math.min(...[...chain.tokens.values()].map((token) => token.transferGas));
  return Math.max(1, Math.floor(chain.network.batchGas / least));
}
