import { createHash } from "node:crypto";
import { base58 } from "@scure/base";
import { type AccountState, type Accounts, type Key, keyOf, systemProgram } from "./account-store.ts";
import { isWritable, type WireTransaction } from "./transaction-format.ts";

// A nonce account: version and state as u32, authority 32, nonce 32, lamports per signature as u64.
const accountBytes = 80;
const advanceInstruction = 4;

/** Returns the nonce that accounts receive when they are advanced while this blockhash is the newest. */
export const nonceFrom = (blockhash: string): Uint8Array =>
  createHash("sha256").update("DURABLE_NONCE").update(base58.decode(blockhash)).digest();

/** Returns the authority and nonce of an initialized nonce account, or undefined. */
export function nonceIn(state: AccountState | undefined): { authority: Key; nonce: Uint8Array } | undefined {
  if (state === undefined || keyOf(state.owner) !== systemProgram || state.data.length !== accountBytes)
    return undefined;
  if (state.data[4] !== 1) return undefined;
  return { authority: keyOf(state.data.subarray(8, 40)), nonce: state.data.subarray(40, 72) };
}

export function withNonce(state: AccountState, nonce: Uint8Array): AccountState {
  const data = Uint8Array.from(state.data);
  data.set(nonce, 40);
  return { ...state, data };
}

/** Returns the nonce account that the first instruction advances, in any state. */
function advanced({ instructions, keys }: WireTransaction): { account: number; signers: number[] } | undefined {
  const [first] = instructions;
  if (first === undefined || first.data.length < 4) return undefined;
  const program = keys[first.program];
  const account = first.accounts[0];
  if (program === undefined || account === undefined || keyOf(program) !== systemProgram) return undefined;
  if (Buffer.from(first.data.subarray(0, 4)).readUInt32LE() !== advanceInstruction) return undefined;
  return { account, signers: [...first.accounts] };
}

/**
 * Returns the nonce account whose nonce is the blockhash of a transaction. Returns undefined when there is none, when its nonce
 * has changed, or when it was advanced in this slot already.
 */
export function usableNonce(transaction: WireTransaction, accounts: Accounts, next: Uint8Array): Key | undefined {
  const found = advanced(transaction);
  const address = found === undefined ? undefined : transaction.keys[found.account];
  if (found === undefined || address === undefined || !isWritable(transaction, found.account)) return undefined;
  const held = nonceIn(accounts.read(keyOf(address)));
  if (held === undefined || base58.encode(held.nonce) !== transaction.blockhash) return undefined;
  if (Buffer.compare(held.nonce, next) === 0) return undefined;
  const { signers } = transaction.header;
  const isSigned = found.signers.some((index) => {
    const key = transaction.keys[index];
    return index < signers && key !== undefined && keyOf(key) === held.authority;
  });
  return isSigned ? keyOf(address) : undefined;
}
