import { base58 } from "@scure/base";
import { type Key, keyOf, memoPrograms } from "./account-store.ts";
import type { IncludedTransaction } from "./slots.ts";
import type { WireTransaction } from "./transaction-format.ts";

export type History = {
  find(signature: string): IncludedTransaction | undefined;
  /** Returns the transactions that name an account, oldest first. */
  of(account: Key): readonly IncludedTransaction[];
  count(): number;
  add(landed: IncludedTransaction): void;
  /** Removes the newest transaction. */
  remove(landed: IncludedTransaction): void;
};

export function openHistory(): History {
  const bySignature = new Map<string, IncludedTransaction>();
  const byAccount = new Map<Key, IncludedTransaction[]>();
  return {
    find: (signature) => bySignature.get(signature),
    of: (account) => byAccount.get(account) ?? [],
    count: () => bySignature.size,
    add(landed) {
      bySignature.set(landed.signature, landed);
      for (const key of landed.execution.keys) {
        const list = byAccount.get(key);
        if (list === undefined) byAccount.set(key, [landed]);
        else list.push(landed);
      }
    },
    remove(landed) {
      bySignature.delete(landed.signature);
      for (const key of landed.execution.keys) byAccount.get(key)?.pop();
    },
  };
}

export function memoOf({ instructions, keys }: WireTransaction): string | null {
  const memos = instructions
    .filter(({ program }) => memoPrograms.includes(keyOf(keys[program] ?? new Uint8Array(32))))
    .map(({ data }) => `[${data.length}] ${Buffer.from(data).toString("utf8")}`);
  return memos.length === 0 ? null : memos.join("; ");
}

export const encodeKey = (key: Key): string => base58.encode(Buffer.from(key, "latin1"));
