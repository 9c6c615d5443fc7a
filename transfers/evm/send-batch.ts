import { broadcastBytes } from "../../chains/evm/evm-broadcast.ts";
import { toFeeMembers } from "../../chains/evm/fee-members.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { type LaneWork, readLaneWork } from "../../db/queries/lane-work.ts";
import type { TransactionKey } from "../../db/queries/transactions.ts";
import type { EvmTransferRow } from "../../db/queries/transfers.ts";
import { attemptAll } from "../attempt-all.ts";
import { holdUnprocessable } from "../hold-unprocessable.ts";
import { traceTransfers } from "../trace-transfers.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { listCalls } from "./authorization-calls.ts";
import { claimBatch, type Lane, RELAYED } from "./claim-batch.ts";
import { dryRunBatch, type RowMember } from "./dry-run.ts";
import { formingMs, lastSendMs } from "./forming-batches.ts";
import { chooseFees } from "./gas-fees.ts";
import { dayBefore, hourBefore, mustSendAlone } from "./gas-limits.ts";
import { maxBatchSize } from "./lane-capacity.ts";
import { readSpendable, spendGas } from "./lane-funds.ts";
import { buildPayload, pickBatch, sumGas } from "./multicall-batch.ts";
import { priceBatch } from "./price-batch.ts";
import { type Price, sumCosts } from "./price-transaction.ts";
import { storeBroadcastResult } from "./store-broadcast-result.ts";
import { storeSigned } from "./store-signed.ts";
import { gasOf } from "./transfer-gas.ts";

/**
 * Sends one transaction of a lane, for the transfers that it may send next. Returns `waitMs` while the batch forms, also when
 * none of its transfers is ready yet: the lane is kept, so that those that become ready need no job. Returns `short` when the
 * lane cannot pay for all of them, whether it has sent some or none.
 */
export async function sendBatch(
  deps: TransferDeps,
  chain: EvmChain,
  lane: Lane,
  mayForm: boolean,
): Promise<"sent" | "idle" | "blocked" | "short" | { waitMs: number }> {
  const { lease } = lane;
  const most = maxBatchSize(chain);
  const now = deps.now();
  const since = { burnedSince: hourBefore(now), burnersSince: dayBefore(now) };
  const wanted = { chain: chain.chain, kinds: RELAYED, now, limit: most, ...since };
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
  const ready = await claimBatch(deps, chain, lane, work);
  if (ready.length === 0) return "idle";
  const of = { chain: chain.chain, transfers: ready };
  return traceTransfers(deps, "relay", of, () => sendReady(deps, chain, lane, { ready, baseFee, work }));
}

/** How the sending of a batch ended. */
type Sent = "sent" | "blocked" | "short";

/** Sends one transaction for claimed transfers: picks a batch of them and simulates it, sends the good ones, and holds the others. */
async function sendReady(
  deps: TransferDeps,
  chain: EvmChain,
  lane: Lane,
  { ready, baseFee, work }: { ready: readonly EvmTransferRow[]; baseFee: bigint; work: LaneWork },
): Promise<Sent> {
  const picked = pickBatch(await toMembers(deps, chain, ready, work), chain.network.batchGas);
  if (picked.length === 0) return "sent";
  const priced = await priceBatch(deps, chain, { picked, baseFee });
  if (!priced) return "blocked";
  const { batch, price } = priced;
  // What is sent costs at most as much as the whole batch.
  const most = costsOf(batch, price, work);
  const [{ good, handleFailed }, spendable = most.cost] = await Promise.all([
    dryRunBatch(deps, chain, { ...lane, price }, batch),
    readSpendable(deps, chain, lane.lease, most),
  ]);
  let sent: Sent = "sent";
  // The transfers that failed are held afterwards in any case, so the next batch has others or none.
  await attemptAll([
    async () => {
      if (good.length > 0) sent = await sendGood(deps, chain, lane, { passed: good, price, spendable, work });
    },
    handleFailed,
  ]);
  return sent;
}

/** Returns what these transfers would cost, and what the lane's transactions in flight cost, wei. */
function costsOf(members: readonly RowMember[], price: Price, work: LaneWork): ReturnType<typeof sumCosts> {
  return sumCosts(price, sumGas(members) + price.extraGas, work);
}

/** Signs, stores and broadcasts a transaction for the transfers that have passed the simulation. */
async function sendGood(
  deps: TransferDeps,
  chain: EvmChain,
  { lease, signer }: Lane,
  { passed, price, spendable, work }: { passed: readonly RowMember[]; price: Price; spendable: bigint; work: LaneWork },
): Promise<Sent> {
  // A lane with little gas sends what it can pay for: without another lane, all transfers would wait until it has more.
  let good = passed;
  while (good.length > 0 && costsOf(good, price, work).cost > spendable) good = good.slice(0, -1);
  if (good.length === 0) return "short";
  spendGas(chain, lease, costsOf(good, price, work).cost);
  const nonce = lease.next_nonce;
  const { to, data, gas: limit } = buildPayload(chain.multicall, good);
  const [gas, { fees }] = [limit + price.extraGas, price];
  const { chainId } = chain;
  const offered = toFeeMembers(chain.network.feeModel, fees);
  const bytes = await signer.signTransaction({ chainId, nonce, to, data, gas, ...offered });
  const key: TransactionKey = { lane_id: lease.id, nonce, replacement: work.replacement };
  const signed = { key, bytes, gas, fees, height: work.height, rows: good.map(({ row }) => row) };
  if (!(await storeSigned(deps, chain, lease, signed))) return "blocked";
  lease.next_nonce = nonce + 1;
  deps.metrics.batchSize.observe({ chain: chain.chain }, good.length);
  const broadcast = await broadcastBytes(chain, bytes);
  await storeBroadcastResult(deps, chain, key, broadcast);
  if (broadcast.outcome !== "accepted") return "blocked";
  return good.length < passed.length ? "short" : "sent";
}

/** Returns claimed transfers with their calls and gas. Holds those whose rows cannot be turned into calls. */
async function toMembers(
  deps: TransferDeps,
  chain: EvmChain,
  ready: readonly EvmTransferRow[],
  { sharedBurned }: Pick<LaneWork, "sharedBurned">,
): Promise<RowMember[]> {
  const members: RowMember[] = [];
  const areAlone = mustSendAlone(chain, sharedBurned);
  for (const row of ready) {
    try {
      members.push({
        row,
        alone: row.alone || row.smart_wallet || (areAlone && row.purpose === "payment"),
        gas: gasOf(chain, row),
        calls: listCalls(chain, row),
      });
    } catch (error) {
      await holdUnprocessable(deps, row, error);
    }
  }
  return members;
}
