import type { Hex } from "viem";
import { ChainError, isTransientChainError, isUnreadable } from "../../chains/errors.ts";
import { readBlock, readFinalHeight } from "../../chains/evm/blocks.ts";
import { type Receipt, readReceipt } from "../../chains/evm/evm-broadcast.ts";
import type { EndpointRpc, Rpc } from "../../chains/evm/evm-rpc.ts";
import { type KeptReadings, openKeptReadings } from "../../chains/evm/kept-readings.ts";
import type { EvmChain, EvmToken } from "../../chains/evm/open-evm-chain.ts";
import { isTooLarge, readLogsOfPayers } from "../../chains/evm/transaction-movements.ts";
import { matchPushes, readTransferLogs } from "../../chains/evm/transfer-logs.ts";
import type { EvmMovement } from "../../chains/token-movement.ts";
import type { Cursor } from "../../db/queries/chain-cursors.ts";
import type { ConfirmedTransfer } from "../../db/queries/confirmable-transfers.ts";
import { orphanMovement } from "../../db/queries/observations.ts";
import { revertTransfers } from "../../db/queries/transfer-moves.ts";
import type { UnmatchedObservation } from "../../db/queries/unmatched-movements.ts";
import { readHex } from "../../runtime/hex.ts";
import { isLargeAmount } from "../large-amount.ts";
import { isSameMovement } from "../match-movements.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { recordDisagreement } from "./second-reading.ts";

/** Endpoints that must agree on a large movement. */
const REQUIRED_ENDPOINTS = 2;
/** How long a small movement that was recorded late waits for endpoints that do not answer or lag, milliseconds. */
const LATE_WAIT_MS = 30_000;

/** How long it is known that a receipt is too large, after its last use, milliseconds, and of how many transactions of each endpoint. */
const TOO_LARGE_MS = 5 * 60_000;
const MAX_TOO_LARGE = 1_000;
/** Transactions whose receipts are too large for an endpoint. Asking again could suspend it before it shows their logs. */
const tooLarge = new WeakMap<Rpc, KeptReadings<true>>();

/** What each endpoint must show of a movement on its own. */
type Shown = Pick<
  UnmatchedObservation,
  | "chain"
  | "block_number"
  | "block_id"
  | "tx_hash"
  | "log_index"
  | "token"
  | "payer"
  | "receiver"
  | "amount"
  | "authorization_nonce"
  | "recorded_late"
  | "observed_at"
>;

/**
 * What an endpoint says about a movement. It `differs` when it shows the movement with another natural key. It is `silent` while
 * it does not answer, gives an answer that cannot be read, or has not reached the block.
 */
type Answer = "shown" | "differs" | "absent" | "silent";

/** Selects the movements that can be booked now: those on which no further agreement is needed, or endpoints agree. */
export type Agreement = {
  keepTransfers(transfers: readonly ConfirmedTransfer[]): Promise<ConfirmedTransfer[]>;
  keepMovements(movements: readonly UnmatchedObservation[]): Promise<UnmatchedObservation[]>;
  /** Returns the movements recorded late that no endpoint shows any more. */
  listRefuted(): readonly Shown[];
};

/**
 * Opens the comparison of endpoints for one booking. The networks file says which amounts are large, by asset
 * (`agreementThreshold`). A large movement waits without a time limit until two endpoints show its log in the receipt, in the same
 * block, and each of them reports that block as final. A small movement that was recorded late needs the same, but waits only for
 * a while for endpoints that do not answer or lag. One that another endpoint contradicts waits until that ends.
 */
export function openAgreement(deps: Pick<TransferDeps, "metrics" | "log" | "now">, chain: EvmChain): Agreement {
  const tokenOf = new Map<string, EvmToken>([...chain.tokens.values()].map((token) => [token.token, token]));
  const ask = openQuestions(deps, chain);
  const refuted: Shown[] = [];
  const isAgreed = async (movement: Shown): Promise<boolean> => {
    const isLarge = isLargeAmount(chain, tokenOf.get(movement.token), movement.amount);
    if (!isLarge && !movement.recorded_late) return true;
    const answers = await Promise.all(chain.endpoints.map((endpoint) => ask(endpoint, movement)));
    const shown = answers.filter((answer) => answer === "shown").length;
    if (shown >= REQUIRED_ENDPOINTS) return true;
    const against = chain.endpoints.filter((_, index) => answers[index] === "absent" || answers[index] === "differs");
    const { tx_hash: tx, amount } = movement;
    if (movement.recorded_late && against.length > 0) {
      if (answers.every((answer) => answer === "absent")) refuted.push(movement);
      const detail = `a log of transaction ${tx} in block ${movement.block_number}`;
      const error = new ChainError("endpoints_disagree", { detail });
      for (const endpoint of against) recordDisagreement(deps, chain, endpoint, error);
      return false;
    }
    const hasWaited = deps.now().getTime() - movement.observed_at.getTime() >= LATE_WAIT_MS;
    if (!isLarge && shown > 0 && (shown === answers.length || hasWaited)) return true;
    if (isLarge) deps.metrics.agreementWaits.inc({ chain: chain.chain });
    deps.log.warn(
      { chain: chain.chain, tx, amount: String(amount) },
      `${isLarge ? "large movement" : "movement that was recorded late"} waits for a second endpoint`,
    );
    return false;
  };
  const keep = async <M>(all: readonly M[], show: (one: M) => Shown): Promise<M[]> => {
    const kept: M[] = [];
    for (const one of all) if (await isAgreed(show(one))) kept.push(one);
    return kept;
  };
  return {
    keepTransfers: (transfers) =>
      // The endpoints show what moved, which can be more than an adopted payout owed.
      keep(transfers, (one) => ({ ...one, amount: one.observed_amount })),
    keepMovements: (movements) => keep(movements, (one) => one),
    listRefuted: () => refuted,
  };
}

/** Returns a function that asks an endpoint for a movement. It reads each height and each transaction once. */
function openQuestions(
  { log }: Pick<TransferDeps, "log">,
  chain: EvmChain,
): (endpoint: EndpointRpc, movement: Shown) => Promise<Answer> {
  const finals = new Map<EndpointRpc, Promise<number>>();
  const readings = new Map<string, Promise<EvmMovement[]>>();
  const ask = async (endpoint: EndpointRpc, movement: Shown): Promise<Answer> => {
    const final = finals.get(endpoint) ?? readFinalHeight(chain, endpoint.rpc);
    finals.set(endpoint, final);
    if ((await final) < movement.block_number) return "silent";
    const { block_id, tx_hash, token, payer } = movement;
    const key = [endpoint.name, block_id, tx_hash, token, payer].join(" ");
    const view = { ...chain, rpc: endpoint.rpc };
    const reading = readings.get(key) ?? readMovements(view, movement);
    readings.set(key, reading);
    const same = (await reading).find((one) => one.logIndex === movement.log_index && isSameMovement(one, movement));
    if (!same) return "absent";
    return (await hasKey(view, same, movement.authorization_nonce)) ? "shown" : "differs";
  };
  return (endpoint, movement) =>
    ask(endpoint, movement).catch((err: unknown) => {
      const facts = { chain: chain.chain, endpoint: endpoint.name, tx: movement.tx_hash, err };
      if (isUnreadable(err)) log.error(facts, "an endpoint's answer about a movement cannot be read");
      else if (!isTransientChainError(err))
        log.error(facts, "a movement cannot be compared because of an internal error");
      // One movement that cannot be compared must not keep those from being booked that need no agreement.
      return "silent";
    });
}

/** Returns the movements of a payer that an endpoint shows in a transaction and block: none when it has another block there. */
async function readMovements(view: EvmChain, movement: Shown): Promise<EvmMovement[]> {
  const [hash, block] = [readHex(movement.tx_hash), readHex(movement.block_id)];
  const receipt = await readReceiptUnlessTooLarge(view.rpc, hash);
  if (receipt) return receipt.reverted || receipt.blockHash !== block ? [] : readTransferLogs(receipt.logs, view);
  // An endpoint can show the logs of a block without its receipts: it has dropped them, still builds its index, or sends none so large.
  try {
    if ((await readBlock(view.rpc, movement.block_number)).hash !== block) return [];
    const made = [{ token: readHex(movement.token), payer: readHex(movement.payer) }];
    return readTransferLogs(await readLogsOfPayers(view, { hash, block, made }), view);
  } catch (error) {
    // An endpoint without the logs may only have been slow.
    if (hasAnswered(error)) tooLargeOf(view.rpc).drop(hash);
    throw error;
  }
}

const hasAnswered = (error: unknown): boolean =>
  !(error instanceof ChainError && (error.code === "rpc_unreachable" || error.code === "budget_spent"));

function tooLargeOf(rpc: Rpc): KeptReadings<true> {
  const known = tooLarge.get(rpc) ?? openKeptReadings<true>({ keptMs: TOO_LARGE_MS, maxSize: MAX_TOO_LARGE });
  tooLarge.set(rpc, known);
  return known;
}

/** Returns a receipt; undefined while the endpoint has none, and where it is too large for it: any account can fill one with logs. */
async function readReceiptUnlessTooLarge(rpc: Rpc, hash: Hex): Promise<Receipt | undefined> {
  const known = tooLargeOf(rpc);
  if (known.find(hash)) return undefined;
  return readReceipt(rpc, hash).catch((error: unknown) => {
    if (!isTooLarge(error)) throw error;
    known.keep(hash, true);
    return undefined;
  });
}

/** Returns true when an endpoint shows a movement with this natural key, or when none is known. */
async function hasKey(view: EvmChain, log: EvmMovement, nonce: string | null): Promise<boolean> {
  if (nonce === null || log.authorizationNonce === nonce) return true;
  if (log.authorizationNonce !== null) return false;
  const pushed = { ...log };
  await matchPushes(view.rpc, [pushed]);
  return pushed.authorizationNonce === nonce;
}

/**
 * Reverts a movement that was recorded late and that no endpoint shows: the endpoint that showed it was wrong, and is honest or
 * removed now. Its transfer is as open as before.
 */
export async function orphanRefuted(
  deps: Pick<TransferDeps, "db" | "log" | "now">,
  { chain }: Pick<EvmChain, "chain">,
  cursor: Cursor,
  movement: Shown,
): Promise<void> {
  const depth = cursor.number - movement.block_number + 1;
  await deps.db.transaction().execute(async (db) => {
    const id = await orphanMovement(db, movement);
    if (id !== null) await revertTransfers(db, { ids: [id], depth, at: deps.now() });
  });
  deps.log.error({ chain, tx: movement.tx_hash }, "no endpoint shows a movement any more; it is reverted");
}
