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
} from "./accounts.ts";
import { failureOf, type TransactionFailure } from "./errors.ts";
import { isWritable, type WireTransaction } from "./wire.ts";

export type InnerInstruction = { program: number; accounts: Uint8Array; data: Uint8Array; height: number };
export type Holding = { lamports: number; token: Token | undefined };

/** What a run of a transaction gave. */
export type Run = {
  failure: TransactionFailure | undefined;
  /** In lamports; with the priority fee. */
  fee: number;
  logs: string[];
  units: number;
  inner: InnerInstruction[][];
  returnData: { program: Uint8Array; data: Uint8Array } | undefined;
};

/** A run that was written down; a long bench keeps a hundred thousand of them. */
export type Execution = Run & {
  /** The static accounts, then those that lookup tables gave: first the writable ones. */
  keys: Key[];
  /** In the order of `keys`. */
  before: Holding[];
  after: Holding[];
};

/** What accounts were before something changed them. */
export type Images = Map<Key, AccountState | undefined>;

/** `after` gives the accounts as they would be; none when the transaction failed. */
export type Simulation = { run: Run; after(): Map<Key, AccountState> };

export type Bank = {
  accounts: Accounts;
  rentFor(bytes: number): number;
  setClock(slot: number, seconds: number, hashes: { slot: number; hash: string }[]): void;
  /** Runs it and writes nothing. */
  simulate(transaction: WireTransaction, verify: boolean): Simulation;
  /** Runs it; a failure is charged as on the network, and one that cannot even pay its fee gives undefined. */
  execute(transaction: WireTransaction): { execution: Execution; images: Images } | undefined;
};

/** A litesvm with the programs of mainnet. It checks signatures; blockhashes and repetition are the ledger's part. */
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
      // A transaction that fails is part of the block when its fee was taken.
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

/** One state has one holding, however many transactions see it. */
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
    fee: feeOf(meta),
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

/** litesvm knows the fee but gives it in its text only. */
function feeOf(meta: TransactionMetadata): number {
  const fee = /, fee: (\d+) \}\)$/.exec(meta.toString())?.[1];
  if (fee === undefined) throw new Error("litesvm does not tell the fee any more");
  return Number(fee);
}

// A lookup table's addresses stand behind its 56 bytes of state.
const tableState = 56;

/** A table that is missing or too short gives nothing here: litesvm then refuses the transaction. */
function loadKeys(transaction: WireTransaction, accounts: Accounts): { keys: Key[]; writable: boolean[] } {
  const loaded = { writable: [] as Key[], readonly: [] as Key[] };
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
