import { type FailedTransactionMetadata, LiteSvm, type TransactionMetadata } from "litesvm/dist/internal.js";
import {
  type AccountState,
  type Accounts,
  type Key,
  keyOf,
  openAccounts,
  type Token,
  tokenIn,
  toState,
} from "./account-store.ts";
import { isWritable, type WireTransaction } from "./transaction-format.ts";
import { failureOf, type TransactionFailure } from "./validator-errors.ts";

export type InnerInstruction = { program: number; accounts: Uint8Array; data: Uint8Array; height: number };
export type Holding = { lamports: number; token: Token | undefined };

/** The result of executing or simulating a transaction. */
export type Run = {
  failure: TransactionFailure | undefined;
  /** Lamports, including the priority fee. */
  fee: number;
  logs: string[];
  units: number;
  inner: InnerInstruction[][];
  returnData: { program: Uint8Array; data: Uint8Array } | undefined;
};

/** The result of an execution. A long benchmark keeps a hundred thousand of them. */
export type Execution = Run & {
  /** The static accounts, then those of lookup tables, the writable ones first. */
  keys: Key[];
  /** In the order of `keys`. */
  before: Holding[];
  after: Holding[];
};

/** The states of accounts before a change. */
export type Images = Map<Key, AccountState | undefined>;

/** `after` returns the resulting accounts, or none when the transaction failed. */
export type Simulation = { run: Run; after(): Map<Key, AccountState> };

export type Bank = {
  accounts: Accounts;
  rentFor(bytes: number): number;
  setClock(slot: number, seconds: number, hashes: { slot: number; hash: string }[]): void;
  /** Simulates a transaction without storing anything. */
  simulate(transaction: WireTransaction, verify: boolean): Simulation;
  /** Executes a transaction. A failed one pays its fee as on the network. Returns undefined when it cannot pay its fee. */
  execute(transaction: WireTransaction): { execution: Execution; images: Images } | undefined;
};

/** Opens a litesvm with the programs of mainnet. It verifies signatures; the ledger checks blockhashes and duplicates. */
export function openBank(): Bank {
  const svm = new LiteSvm();
  svm.withNativeMints();
  svm.setBlockhashCheck(false);
  svm.setTransactionHistory(0n);
  const accounts = openAccounts(svm);
  return {
    accounts,
    rentFor: (bytes) => Number(svm.minimumBalanceForRentExemption(BigInt(bytes))),
    setClock(slot, seconds, hashes) {
      const clock = svm.getClock();
      clock.slot = BigInt(slot);
      clock.unixTimestamp = BigInt(seconds);
      svm.setClock(clock);
      svm.setSlotHashes(hashes.map(({ slot, hash }) => ({ slot: BigInt(slot), hash })));
    },
    simulate(transaction, verify) {
      svm.setSigverify(verify);
      const answer = svm.simulateVersionedTransaction(transaction.bytes);
      if ("err" in answer) return { run: failedRun(answer), after: nothing };
      const after = () =>
        new Map(answer.postAccounts().map((each) => [keyOf(each.address), toState(each.account())] as const));
      return { run: toRun(answer.meta()), after };
    },
    execute(transaction) {
      const { keys, writable } = loadKeys(transaction, accounts);
      const states = keys.map((key) => accounts.read(key));
      svm.setSigverify(true);
      const answer = svm.sendVersionedTransaction(transaction.bytes);
      const run = "err" in answer ? failedRun(answer) : toRun(answer);
      const changed = keys.map((key, index) => (writable[index] === true ? accounts.refresh(key) : states[index]));
      // A failed transaction is part of the block when it has paid its fee.
      const paid = (changed[0]?.lamports ?? 0n) < (states[0]?.lamports ?? 0n);
      if (run.failure !== undefined && !paid) return undefined;
      const images: Images = new Map();
      for (const [index, key] of keys.entries()) if (states[index] !== changed[index]) images.set(key, states[index]);
      return { execution: { ...run, keys, before: states.map(holding), after: changed.map(holding) }, images };
    },
  };
}

const nothing = (): Map<Key, AccountState> => new Map();

const holdings = new WeakMap<AccountState, Holding>();
const noHolding: Holding = { lamports: 0, token: undefined };

/** Returns the holding of an account state, and the same object for the same state. */
function holding(state: AccountState | undefined): Holding {
  if (state === undefined) return noHolding;
  const known = holdings.get(state);
  if (known !== undefined) return known;
  const made = { lamports: Number(state.lamports), token: tokenIn(state) };
  holdings.set(state, made);
  return made;
}

const failedRun = (answer: FailedTransactionMetadata): Run => ({ ...toRun(answer.meta()), failure: failureOf(answer) });

function toRun(meta: TransactionMetadata): Run {
  const data = meta.returnData();
  const bytes = data.data();
  return {
    failure: undefined,
    fee: calculateFee(meta),
    logs: meta.logs(),
    units: Number(meta.computeUnitsConsumed()),
    inner: meta.innerInstructions().map((outer) =>
      outer.map((each) => {
        const instruction = each.instruction();
        const parts = { accounts: instruction.accounts(), data: instruction.data() };
        return { program: instruction.programIdIndex(), ...parts, height: each.stackHeight() };
      }),
    ),
    returnData: bytes.length === 0 ? undefined : { program: data.programId(), data: bytes },
  };
}

/** Returns the fee, which litesvm exposes only in its text form. */
function calculateFee(meta: TransactionMetadata): number {
  const fee = /, fee: (\d+) \}\)$/.exec(meta.toString())?.[1];
  if (fee === undefined) throw new Error("litesvm no longer prints the fee");
  return Number(fee);
}

// The addresses of a lookup table follow its 56 bytes of state.
const tableState = 56;

/** Returns all account keys of a transaction. A missing or short lookup table adds none; litesvm then rejects the transaction. */
function loadKeys(transaction: WireTransaction, accounts: Accounts): { keys: Key[]; writable: boolean[] } {
  const loaded: { writable: Key[]; readonly: Key[] } = { writable: [], readonly: [] };
  for (const lookup of transaction.lookups) {
    const data = accounts.read(keyOf(lookup.table))?.data;
    if (data === undefined) continue;
    const entries = (indexes: Uint8Array): Key[] =>
      Array.from(indexes, (index) => data.subarray(tableState + 32 * index, tableState + 32 * (index + 1)))
        .filter(({ length }) => length === 32)
        .map(keyOf);
    loaded.writable.push(...entries(lookup.writable));
    loaded.readonly.push(...entries(lookup.readonly));
  }
  const fixed = transaction.keys.map(keyOf);
  const writable = fixed.map((_, index) => isWritable(transaction, index));
  return {
    keys: [...fixed, ...loaded.writable, ...loaded.readonly],
    writable: [...writable, ...loaded.writable.map(() => true), ...loaded.readonly.map(() => false)],
  };
}
