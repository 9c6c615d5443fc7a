import { randomBytes } from "node:crypto";
import { type Hex, hexToBytes, type PrivateKeyAccount, toHex } from "viem";
import { encodeTransfer, hashAuthorization } from "../../chains/evm/eip3009.ts";
import { readFamilyRow } from "../../db/chain-families.ts";
import type { Cursor } from "../../db/queries/chain-cursors.ts";
import type { ConfirmedTransfer } from "../../db/queries/confirmable-transfers.ts";
import type { SpentTransaction } from "../../db/queries/transactions.ts";
import type { TransferRow } from "../../db/queries/transfers.ts";
import type { UnmatchedObservation } from "../../db/queries/unmatched-movements.ts";
import type { BookingHandlers, SendHandlers } from "../../transfers/booking-handlers.ts";
import { toAuthorization } from "../../transfers/evm/authorization-calls.ts";
import { relayReady, relayWallets } from "../../transfers/evm/drive-lanes.ts";
import { startTransfers } from "../../transfers/start-transfers.ts";
import { watchChain } from "../../transfers/watch-pass.ts";
import type { TestChain } from "./evm-chain.ts";
import { insertMerchant, insertTransferRow } from "./insert-rows.ts";
import { mapConcurrently } from "./sign-payments.ts";
import { type DepsOptions, makeDeps } from "./test-deps.ts";
import { waitFor } from "./wait-for.ts";

/** An aborted signal: the watcher makes one pass over the existing blocks and does not wait for more. */
const withoutWaiting = AbortSignal.abort();

/**
 * Returns a fixture for the module transfers/ on a real chain and database. Tests call its steps directly, and it
 * records what the module passes to the ledger.
 */
export async function makeTransfersFixture(chain: TestChain, options: DepsOptions = {}) {
  const made = await makeDeps(chain, options);
  const { deps, db } = made;
  for (const id of deps.chains.keys()) await startTransfers(deps, id);
  const merchant = await insertMerchant(db);
  const confirmed: ConfirmedTransfer[] = [];
  const ended: TransferRow[] = [];
  const failed: TransferRow[] = [];
  const unmatched: UnmatchedObservation[] = [];
  const spent: SpentTransaction[] = [];
  const declined: TransferRow[] = [];
  let bookingError: Error | undefined;
  const handlers: BookingHandlers = {
    confirmed: async (_db, found) => {
      if (bookingError) throw bookingError;
      return () => void confirmed.push(...found);
    },
    ended: async (_db, found) => () => void ended.push(...found),
    failed: async (_db, found) => () => void failed.push(...found),
    unsolicited: async () => () => undefined,
    unmatched: async (_db, found) => void unmatched.push(...found),
    dust: async (_db, { asset, day }) => `${asset}/${day}`,
    gas: async (_db, found) => void spent.push(...found),
    rent: async () => undefined,
    relay: async () => undefined,
  };
  const [token] = made.evm.tokens.values();
  if (!token) throw new Error("the chain has no token");
  const treasury = made.evm.treasury;

  /** Inserts a ready transfer to the treasury, signed by its buyer. */
  const sign = async (buyer: PrivateKeyAccount, amount = 1_000_000n, more: { validBefore?: number } = {}) => {
    const facts = {
      asset: token.asset,
      token: token.token,
      payer: buyer.address.toLowerCase() as `0x${string}`,
      receiver: treasury,
      amount,
      authorization_nonce: toHex(randomBytes(32)),
      valid_before: more.validBefore ?? 4_000_000_000,
    };
    const authorization = toAuthorization(facts);
    const signature = await buyer.sign({ hash: hashAuthorization(token.separator ?? "0x", authorization) });
    const row = { ...facts, signature: Buffer.from(hexToBytes(signature)) };
    const { id, paymentId } = await insertTransferRow(db, merchant, row, deps.now());
    return { id, paymentId, signature, call: encodeTransfer(authorization, signature) };
  };

  /** Makes one pass of the watcher over the existing blocks. */
  const watch = async () => {
    await waitUntilMined(chain);
    return watchChain(deps, { chain: chain.id, signal: withoutWaiting, handlers });
  };
  /** Makes one pass of the watcher that reads blocks as they come, as a worker does. */
  const watchOn = () => watchChain(deps, { chain: chain.id, signal: new AbortController().signal, handlers });
  const rowsOf = async (ids: readonly string[]) => {
    const rows = await db.selectFrom("transfer").selectAll().where("id", "in", ids).execute();
    return ids.map((id) => readFamilyRow(rows.find((row) => row.id === id) as (typeof rows)[number]));
  };
  return {
    ...made,
    confirmed,
    ended,
    failed,
    unmatched,
    spent,
    declined,
    /** Makes the booking of confirmed transfers throw this error; undefined makes it succeed again. */
    failBooking(error: Error | undefined) {
      bookingError = error;
    },
    sign,
    /** Inserts a ready transfer of each buyer, as many at once as the database has connections. */
    signAll: (buyers: readonly PrivateKeyAccount[], amount?: bigint) =>
      mapConcurrently(buyers, 10, (buyer) => sign(buyer, amount)),
    relay: async () => {
      const handlers: SendHandlers = {
        declined: async (_db, found) => () => void declined.push(...found),
        adopted: async (_db, { amount }) => amount,
      };
      const ends = [await relayReady(deps, chain.id, handlers), await relayWallets(deps, chain.id, handlers)];
      return ends.includes("more") ? "more" : "idle";
    },
    watch,
    watchOn,
    rowsOf,
    statesOf: async (ids: readonly string[]) => (await rowsOf(ids)).map((row) => row.state),
    transactions: () => db.selectFrom("transaction").selectAll().orderBy("nonce").orderBy("replacement").execute(),
    observations: () => db.selectFrom("observation").selectAll().orderBy("block_number").orderBy("log_index").execute(),
    cursor: async (): Promise<Cursor> => {
      const row = await db
        .selectFrom("chain_cursor")
        .selectAll()
        .where("chain", "=", chain.id)
        .executeTakeFirstOrThrow();
      const { chain: id, number, block_id: blockId, final_number: finalNumber, fence } = row;
      return { chain: id, number, blockId, finalNumber, fence };
    },
    lane: () => db.selectFrom("lane").selectAll().executeTakeFirstOrThrow(),
  };
}

export type TransfersFixture = Awaited<ReturnType<typeof makeTransfersFixture>>;

/** Relays an authorization as a third party. Returns the transaction's hash. */
export async function relayByThirdParty(chain: TestChain, call: Hex): Promise<Hex> {
  const hash = await chain.client.sendTransaction({ to: chain.contracts.token, data: call, gas: 200_000n });
  await chain.client.waitForTransactionReceipt({ hash });
  return hash;
}

/**
 * Waits until the pool is empty, for at most six seconds: with automine, Anvil answers a send shortly before it mines the
 * block. Returns immediately when automine is off.
 */
export async function waitUntilMined(chain: TestChain): Promise<void> {
  if (!(await chain.client.getAutomine())) return;
  const isEmpty = async () => (await chain.client.getTxpoolStatus()).pending === 0;
  await waitFor(isEmpty, { within: 2_000, what: "an empty pool" }).catch(() => undefined);
}
