import { type Hex, hexToBytes, keccak256, parseTransaction } from "viem";
import { readBlock } from "../chains/evm/blocks.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { offerBytes, readNextNonce, readReceipt } from "../chains/evm/send.ts";
import { ChainFault } from "../chains/faults.ts";
import { findBaseFee } from "../db/cursors.ts";
import { addressOfLane } from "../db/lanes.ts";
import {
  insertTransaction,
  listByNonce,
  listUnincluded,
  markReplaced,
  type TransactionRow,
} from "../db/transactions.ts";
import { listCarried, uncarryTransfers } from "../db/transfers.ts";
import { attemptAll } from "./attempt-all.ts";
import type { TransferDeps } from "./deps.ts";
import { chooseReplacementFees } from "./fees.ts";
import { leadBack } from "./lane-nonce.ts";
import { noteAnswer } from "./relay.ts";

/**
 * What no endpoint has said to have is offered again after this, milliseconds: its process has died before it was sent,
 * or its answer was lost, or it was refused.
 */
const UNANSWERED_PATIENCE_MS = 1_500;
/** What was accepted is offered again after so many block times, and this at least, milliseconds. */
const ACCEPTED_PATIENCE_BLOCKS = 3;
const ACCEPTED_PATIENCE_MS = 2_000;
/** What today's base fee has priced out is replaced after so many block times: no waiting brings it into a block. */
const PRICED_OUT_PATIENCE_BLOCKS = 1;
/** Accepted and in no block after so many block times: the tip is too low, whatever the base fee. */
const TIP_PATIENCE_BLOCKS = 20;
/** Nonces looked at in one turn, and bytes offered again per lane. */
const LOOKED_AT = 500;
const MOST = 20;

/**
 * Looks after transactions that are in no block: offers the same bytes again (a dead process, a node that lost them, a
 * reorg that dropped them), and replaces under a higher fee what the base fee has priced out, and the lowest nonce of a
 * lane when its tip is too low.
 */
export async function recoverLanes(deps: TransferDeps, chain: EvmChain): Promise<void> {
  const rows = await listUnincluded(deps.db, { chain: chain.chain, limit: LOOKED_AT });
  const baseFee = rows.length === 0 ? undefined : await findBaseFee(deps.db, chain.chain);
  if (baseFee === undefined) return;
  const lanes = Map.groupBy(rows, (row) => row.lane_id);
  await attemptAll([...lanes.values()].map((waiting) => () => recoverLane(deps, chain, waiting, baseFee)));
}

/** @param waiting transactions of one lane that are in no block, the lowest nonce first */
async function recoverLane(
  deps: TransferDeps,
  chain: EvmChain,
  waiting: readonly TransactionRow[],
  baseFee: bigint,
): Promise<void> {
  const [lowest] = waiting;
  const due = waiting.filter((row) => isDue(deps, chain, row, baseFee)).slice(0, MOST);
  if (!lowest || due.length === 0) return;
  const used = await readNextNonce(chain.rpc, addressOfLane(lowest.lane_id));
  if (await freeUsedNonces(deps, chain, used, due)) return;
  if (used < lowest.nonce && (await leadBack(deps, chain, waiting))) return;
  for (const row of due) {
    const isStuck = isPricedOut(row, baseFee) || (row === lowest && isIgnored(deps, chain, row));
    const bytes = (isStuck && (await replaceOrKeep(deps, chain, row, baseFee))) || row;
    await noteAnswer(deps, chain, bytes, await offerBytes(chain.rpc, `0x${bytes.bytes.toString("hex")}`));
  }
}

function isDue(deps: TransferDeps, chain: EvmChain, row: TransactionRow, baseFee: bigint): boolean {
  const age = ageMs(deps, row.offered_at ?? row.created_at);
  if (row.state !== "accepted") return age >= UNANSWERED_PATIENCE_MS;
  if (isPricedOut(row, baseFee)) return age >= PRICED_OUT_PATIENCE_BLOCKS * chain.network.blockMs;
  return age >= Math.max(ACCEPTED_PATIENCE_MS, ACCEPTED_PATIENCE_BLOCKS * chain.network.blockMs);
}

/**
 * A nonce that the final chain has passed, and at which none of our hashes has a receipt, was used by a transaction
 * that is not ours. Only then do its transfers leave it: before, our bytes may still land.
 */
async function freeUsedNonces(
  deps: TransferDeps,
  chain: EvmChain,
  used: number,
  due: readonly TransactionRow[],
): Promise<boolean> {
  const passed = due.filter((row) => row.nonce < used);
  for (const row of passed) {
    const address = addressOfLane(row.lane_id);
    const twins = await listByNonce(deps.db, row);
    const receipts = await Promise.all(twins.map((twin) => readReceipt(chain.rpc, twin.hash)));
    // Ours, and the watcher is about to read its block.
    if (receipts.some((receipt) => receipt !== undefined)) continue;
    if (!(await isPassedForGood(chain, address, row.nonce))) continue;
    const stranded = await listCarried(deps.db, [row]);
    deps.log.error(
      { chain: chain.chain, lane: address, nonce: row.nonce },
      "a lane's nonce was used by somebody else; the key must serve this deployment alone",
    );
    await deps.db.transaction().execute(async (db) => {
      await markReplaced(db, row);
      await uncarryTransfers(db, {
        ids: stranded.map(({ id }) => id),
        reason: "its nonce was used by somebody else",
        now: deps.now(),
      });
    });
  }
  return passed.length > 0;
}

/** True when the account's nonce has been passed at the depth of the network's finality. */
async function isPassedForGood(chain: EvmChain, address: Hex, nonce: number): Promise<boolean> {
  const { finality } = chain.network;
  const head = await readBlock(chain.rpc, typeof finality === "object" ? "latest" : finality);
  const height = typeof finality === "object" ? Math.max(0, head.number - finality.blocks + 1) : head.number;
  const count = await chain.rpc({ method: "eth_getTransactionCount", params: [address, `0x${height.toString(16)}`] });
  return Number(count) > nonce;
}

/** What pays today's base fee was dropped, or its answer lost, and the same bytes will do. */
function isPricedOut(row: TransactionRow, baseFee: bigint): boolean {
  return row.max_fee_per_gas < baseFee + row.max_priority_fee_per_gas;
}

/** Accepted for long, and nobody wants its tip. (A reorg clears the time of the last offer: then the same bytes come first.) */
function isIgnored(deps: TransferDeps, chain: EvmChain, row: TransactionRow): boolean {
  const patience = TIP_PATIENCE_BLOCKS * chain.network.blockMs + ACCEPTED_PATIENCE_MS;
  return row.state === "accepted" && row.offered_at !== null && ageMs(deps, row.created_at) >= patience;
}

/** A service that does not sign today must not keep what is signed already, here and in other lanes, from being offered. */
async function replaceOrKeep(
  deps: TransferDeps,
  chain: EvmChain,
  row: TransactionRow,
  baseFee: bigint,
): Promise<TransactionRow | undefined> {
  return replace(deps, chain, row, baseFee).catch((err: unknown) => {
    if (!(err instanceof ChainFault)) throw err;
    deps.log.error(
      { err, chain: chain.chain, lane: row.lane_id, nonce: row.nonce },
      "a stuck transaction is not replaced",
    );
    return undefined;
  });
}

/** Signs the same content again under a higher fee; undefined when the ceiling forbids it. */
async function replace(
  deps: TransferDeps,
  chain: EvmChain,
  row: TransactionRow,
  baseFee: bigint,
): Promise<TransactionRow | undefined> {
  const signer = deps.keys.get(chain.chain)?.lanes.find(({ address }) => address === addressOfLane(row.lane_id));
  if (!signer) return undefined;
  const before = { maxFeePerGas: row.max_fee_per_gas, maxPriorityFeePerGas: row.max_priority_fee_per_gas };
  const fees = chooseReplacementFees(before, baseFee, chain.network.fees);
  if (!fees) return undefined;

  const { to, data } = parseTransaction(`0x${row.bytes.toString("hex")}`);
  if (!to || !data) throw new Error(`transaction ${row.hash} has no receiver or no data`);
  const bytes = await signer.signTransaction({
    type: "eip1559",
    chainId: chain.chainId,
    nonce: row.nonce,
    to,
    data,
    gas: row.gas_limit,
    ...fees,
  });
  const next: TransactionRow = {
    ...row,
    replacement: row.replacement + 1,
    hash: keccak256(bytes),
    bytes: Buffer.from(hexToBytes(bytes)),
    max_fee_per_gas: fees.maxFeePerGas,
    max_priority_fee_per_gas: fees.maxPriorityFeePerGas,
    state: "signed",
    created_at: deps.now(),
    offered_at: null,
  };
  await insertTransaction(deps.db, next);
  deps.metrics.transactions.inc({ chain: chain.chain, state: "replacing" });
  return next;
}

function ageMs(deps: TransferDeps, since: Date): number {
  return deps.now().getTime() - since.getTime();
}
