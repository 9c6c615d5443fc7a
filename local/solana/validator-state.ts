import type { AccountState, Key } from "./account-store.ts";
import { type Bank, openBank, type Simulation } from "./bank.ts";
import { type History, memoOf, openHistory } from "./landed-transactions.ts";
import { nonceIn, usableNonce, withNonce } from "./nonce-accounts.ts";
import type { IncludedTransaction } from "./slots.ts";
import { type Commitment, openSlots, type Slots } from "./slots.ts";
import type { WireTransaction } from "./transaction-format.ts";
import type { TransactionFailure } from "./validator-errors.ts";

export type Ledger = {
  bank: Bank;
  slots: Slots;
  history: History;
  /** Makes new slots. */
  advance(count: number): void;
  /** Executes a transaction in the newest slot. Returns undefined when no block would include it. */
  land(transaction: WireTransaction): IncludedTransaction | undefined;
  /** Simulates a transaction on the newest state. */
  simulate(transaction: WireTransaction, options: SimulateOptions): Simulation;
  /** Returns an account at a commitment. */
  read(key: Key, commitment: Commitment): AccountState | undefined;
  /** Removes the newest slots, as a fork does, and returns the removed transactions. */
  rollback(count: number): IncludedTransaction[];
  /** Registers a function that is called after every change: new slots, a landed transaction, removed slots. */
  onChange(listen: () => void): void;
};

type SimulateOptions = { verify: boolean; anyBlockhash: boolean };

export type LedgerOptions = { finalityDepth: number; now: () => number };

/** Opens the state and history of the chain. Every call is synchronous. */
export function openLedger({ finalityDepth, now }: LedgerOptions): Ledger {
  const bank = openBank();
  const slots = openSlots(finalityDepth, now);
  // Slot 0 is final from the start. It holds the genesis state and no transactions, as on the network.
  slots.push();
  const history = openHistory();
  const listeners: (() => void)[] = [];
  const notify = (): void => {
    for (const listen of listeners) listen();
  };
  syncClock(bank, slots);

  /** Returns why a transaction cannot run, or undefined. */
  function rejection(transaction: WireTransaction): TransactionFailure | undefined {
    if (history.find(transaction.signature) !== undefined) return "AlreadyProcessed";
    if (slots.ofBlockhash(transaction.blockhash) !== undefined) return undefined;
    const nonce = usableNonce(transaction, bank.accounts, slots.tip().nonce);
    return nonce === undefined ? "BlockhashNotFound" : undefined;
  }

  return {
    bank,
    slots,
    history,
    advance(count) {
      for (let made = 0; made < count; made += 1) {
        slots.push();
        // Listeners must see every slot, but programs read the clock only between transactions.
        if (made === count - 1) syncClock(bank, slots);
        notify();
      }
    },
    land(transaction) {
      if (rejection(transaction) !== undefined) return undefined;
      const landed = execute(bank, slots, transaction);
      if (landed === undefined) return undefined;
      history.add(landed);
      notify();
      return landed;
    },
    simulate(transaction, { verify, anyBlockhash }) {
      const failure = anyBlockhash ? undefined : rejection(transaction);
      const nothing = { fee: 0, logs: [], units: 0, inner: [], returnData: undefined };
      if (failure !== undefined) return { run: { ...nothing, failure }, after: () => new Map() };
      return bank.simulate(transaction, verify);
    },
    read(key, commitment) {
      let state = bank.accounts.read(key);
      for (const { images } of slots.newerThan(commitment)) if (images.has(key)) state = images.get(key);
      return state;
    },
    rollback(count) {
      const gone = slots.pop(count);
      for (const { images } of gone) for (const [key, state] of images) bank.accounts.write(key, state);
      const landed = gone.flatMap((slot) => slot.landed.toReversed());
      for (const each of landed) history.remove(each);
      slots.push();
      syncClock(bank, slots);
      notify();
      return landed;
    },
    onChange(listen) {
      listeners.push(listen);
    },
  };
}

function syncClock(bank: Bank, slots: Slots): void {
  const { slot, time } = slots.tip();
  const hashes = slots.newest(64).map(({ slot, blockhash }) => ({ slot, hash: blockhash }));
  bank.setClock(slot, time, hashes);
}

function execute(bank: Bank, slots: Slots, transaction: WireTransaction): IncludedTransaction | undefined {
  const { accounts } = bank;
  const slot = slots.tip();
  const isOrdinary = slots.ofBlockhash(transaction.blockhash) !== undefined;
  const nonce = isOrdinary ? undefined : usableNonce(transaction, accounts, slot.nonce);
  const held = nonce === undefined ? undefined : accounts.read(nonce);
  const done = bank.execute(transaction);
  if (done === undefined) return undefined;
  const { execution, images } = done;
  // A failed transaction advances its nonce too. Otherwise it could be charged repeatedly.
  if (nonce !== undefined && execution.failure !== undefined && held !== undefined) {
    const charged = accounts.read(nonce) ?? held;
    if (!images.has(nonce)) images.set(nonce, held);
    accounts.write(nonce, withNonce(charged, slot.nonce));
  }
  // litesvm derives the next nonce from the transaction's blockhash; the network derives it from that of the slot.
  for (const [key, before] of images) {
    const state = accounts.read(key);
    const now = nonceIn(state)?.nonce;
    if (state === undefined || now === undefined) continue;
    if (Buffer.compare(now, nonceIn(before)?.nonce ?? new Uint8Array()) !== 0)
      accounts.write(key, withNonce(state, slot.nonce));
  }
  for (const [key, state] of images) if (!slot.images.has(key)) slot.images.set(key, state);
  const { signature, bytes } = transaction;
  const landed = { signature, bytes, memo: memoOf(transaction), slot, execution };
  slot.landed.push(landed);
  return landed;
}
