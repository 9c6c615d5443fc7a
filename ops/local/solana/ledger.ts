import type { AccountState, Key } from "./accounts.ts";
import { type Bank, openBank, type Simulation } from "./bank.ts";
import type { TransactionFailure } from "./errors.ts";
import { type History, type Landed, memoOf, openHistory } from "./history.ts";
import { nonceIn, usableNonce, withNonce } from "./nonces.ts";
import { type Commitment, openSlots, type Slots } from "./slots.ts";
import type { WireTransaction } from "./wire.ts";

export type Ledger = {
  bank: Bank;
  slots: Slots;
  history: History;
  /** Makes so many new slots. */
  advance(count: number): void;
  /** Puts a transaction into the newest slot; undefined when no block would take it. */
  land(transaction: WireTransaction): Landed | undefined;
  /** What a run on the newest state would give. */
  simulate(transaction: WireTransaction, options: SimulateOptions): Simulation;
  /** An account as this commitment sees it. */
  read(key: Key, commitment: Commitment): AccountState | undefined;
  /** Undoes the newest slots, as a change of fork does, and gives the transactions that are gone. */
  rollback(count: number): Landed[];
  /** Called after every change: new slots, a transaction that landed, slots that are gone. */
  onChange(listen: () => void): void;
};

export type SimulateOptions = { verify: boolean; anyBlockhash: boolean };

export type LedgerOptions = { finalAfter: number; now: () => number };

/** The state of the chain and its past. Nothing here waits: every call is done when it returns. */
export function openLedger({ finalAfter, now }: LedgerOptions): Ledger {
  const bank = openBank();
  const slots = openSlots(finalAfter, now);
  const history = openHistory();
  const listeners: (() => void)[] = [];
  const tell = (): void => {
    for (const listen of listeners) listen();
  };
  syncClock(bank, slots);

  /** What stands against a transaction before it runs. */
  function objection(transaction: WireTransaction): TransactionFailure | undefined {
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
        // Whoever listens must see every slot, but programs look at the clock only between transactions.
        if (made === count - 1) syncClock(bank, slots);
        tell();
      }
    },
    land(transaction) {
      if (objection(transaction) !== undefined) return undefined;
      const landed = execute(bank, slots, transaction);
      if (landed === undefined) return undefined;
      history.add(landed);
      tell();
      return landed;
    },
    simulate(transaction, { verify, anyBlockhash }) {
      const failure = anyBlockhash ? undefined : objection(transaction);
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
      tell();
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

function execute(bank: Bank, slots: Slots, transaction: WireTransaction): Landed | undefined {
  const { accounts } = bank;
  const slot = slots.tip();
  const isOrdinary = slots.ofBlockhash(transaction.blockhash) !== undefined;
  const nonce = isOrdinary ? undefined : usableNonce(transaction, accounts, slot.nonce);
  const held = nonce === undefined ? undefined : accounts.read(nonce);
  const done = bank.execute(transaction);
  if (done === undefined) return undefined;
  const { execution, images } = done;
  // A transaction that fails advances its nonce all the same, or it could be charged again and again.
  if (nonce !== undefined && execution.failure !== undefined && held !== undefined) {
    const charged = accounts.read(nonce) ?? held;
    if (!images.has(nonce)) images.set(nonce, held);
    accounts.write(nonce, withNonce(charged, slot.nonce));
  }
  // litesvm makes the next nonce of the transaction's own blockhash; the network takes that of the slot.
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
