import { base58 } from "@scure/base";
import { Account, type LiteSvm } from "litesvm/dist/internal.js";

/** The parts of an account that a transaction can change. */
export type AccountState = { lamports: bigint; owner: Uint8Array; data: Uint8Array; executable: boolean };

/** The 32 bytes of an address as a Map key, one character per byte, which is cheaper than base58. */
export type Key = string;

export const keyOf = (address: Uint8Array): Key =>
  Buffer.from(address.buffer, address.byteOffset, address.byteLength).toString("latin1");
export const bytesOf = (key: Key): Uint8Array => Buffer.from(key, "latin1");

const known = (address: string): Key => keyOf(base58.decode(address));
export const systemProgram = known("11111111111111111111111111111111");
const tokenProgram = known("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA");
const token2022Program = known("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb");
export const memoPrograms = [
  known("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr"),
  known("Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo"),
];
const sysvars = known("Sysvar1111111111111111111111111111111111111");

export const isTokenProgram = (program: Key): boolean => program === tokenProgram || program === token2022Program;

export type Accounts = {
  /** Returns the newest state, or undefined when the account does not exist. */
  read(key: Key): AccountState | undefined;
  /** Sets an account outside of any transaction; undefined removes it. */
  write(key: Key, state: AccountState | undefined): void;
  /** Reads an account again after a transaction. Returns the same object as before when it did not change. */
  refresh(key: Key): AccountState | undefined;
  /** Returns the token accounts that belong or belonged to an owner. */
  tokenAccountsOf(owner: Key): Iterable<Key>;
};

const noAccount = new Account(0n, new Uint8Array(), new Uint8Array(32), false, 0n);
/** The rent epoch of rent-exempt accounts: the largest possible one. */
export const rentEpoch = 2n ** 64n - 1n;

/** Returns a cache of the accounts of a litesvm: an account is copied once, and again only after it changed. */
export function openAccounts(svm: LiteSvm): Accounts {
  const copies = new Map<Key, AccountState | undefined>();
  const tokens = new Map<Key, Set<Key>>();

  function refresh(key: Key): AccountState | undefined {
    const account = svm.getAccount(bytesOf(key));
    const read = account === null ? undefined : toState(account);
    const before = copies.get(key);
    const state = isSame(before, read) ? before : read;
    // Sysvars change without a transaction, so they are not cached.
    if (state === undefined || keyOf(state.owner) !== sysvars) copies.set(key, state);
    const token = state === undefined ? undefined : tokenIn(state);
    if (token !== undefined) remember(token.owner, key);
    return state;
  }

  function remember(owner: Key, key: Key): void {
    const held = tokens.get(owner);
    if (held === undefined) tokens.set(owner, new Set([key]));
    else held.add(key);
  }

  return {
    read: (key) => (copies.has(key) ? copies.get(key) : refresh(key)),
    write(key, state) {
      svm.setAccount(bytesOf(key), state === undefined ? noAccount : toAccount(state));
      refresh(key);
    },
    refresh,
    tokenAccountsOf: (owner) => tokens.get(owner) ?? [],
  };
}

/** Copies an account out of litesvm. */
export function toState(account: Account): AccountState {
  return {
    lamports: account.lamports(),
    owner: account.owner(),
    data: account.data(),
    executable: account.executable(),
  };
}

const toAccount = ({ lamports, data, owner, executable }: AccountState): Account =>
  new Account(lamports, data, owner, executable, rentEpoch);

function isSame(one: AccountState | undefined, other: AccountState | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return (
    one.lamports === other.lamports &&
    Buffer.compare(one.data, other.data) === 0 &&
    Buffer.compare(one.owner, other.owner) === 0 &&
    one.executable === other.executable
  );
}

export type Token = { program: Key; mint: Key; owner: Key; amount: bigint };

/** Returns the content of an initialized token account of Token or Token-2022, or undefined for any other account. */
export function tokenIn({ owner, data }: AccountState): Token | undefined {
  const program = keyOf(owner);
  if (!isTokenProgram(program) || data.length < 165) return undefined;
  // Token-2022 stores the account type after 165 bytes; 2 is a token account.
  if (data.length > 165 && data[165] !== 2) return undefined;
  const state = data[108];
  if (state !== 1 && state !== 2) return undefined;
  return {
    program,
    mint: keyOf(data.subarray(0, 32)),
    owner: keyOf(data.subarray(32, 64)),
    amount: Buffer.from(data.buffer, data.byteOffset).readBigUInt64LE(64),
  };
}

/** Returns the decimals and supply of a mint, or undefined for any other account. */
export function mintIn({ owner, data }: AccountState): { decimals: number; supply: bigint } | undefined {
  if (!isTokenProgram(keyOf(owner)) || data.length < 82 || data[45] !== 1) return undefined;
  if (data.length > 82 && (data.length < 166 || data[165] !== 1)) return undefined;
  return { decimals: data[44] ?? 0, supply: Buffer.from(data.buffer, data.byteOffset).readBigUInt64LE(36) };
}
