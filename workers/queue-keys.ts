import type { QueueName } from "../queues/catalog.ts";
import { namespaceOf } from "../runtime/caip-namespace.ts";

/** Which keys of a chain a process signs with. It opens no others. */
type NeededKeys = { lanes: boolean; treasury: boolean };

type Namespace = "eip155" | "solana";

const lanes: NeededKeys = { lanes: true, treasury: false };
const treasury: NeededKeys = { lanes: false, treasury: true };
const both: NeededKeys = { lanes: true, treasury: true };

/**
 * The keys that the jobs of each queue sign with, by chain family (CAIP-2 namespace). A new queue does not compile until it
 * has an entry.
 */
const keysOfQueue: Readonly<Record<QueueName, Partial<Record<Namespace, NeededKeys>>>> = {
  "verify-signature": {},
  "verify-contract-wallet": {},
  "relay-transfers": { eip155: lanes },
  "relay-contract-wallet": { eip155: lanes },
  // Signs payouts when it sends them.
  "submit-solana": { solana: both },
  // Replaces stuck transactions, and closes the markers of old payouts on Solana.
  "watch-chain": { eip155: lanes, solana: both },
  "read-history": {},
  "expire-payment": {},
  settle: { eip155: treasury },
  refund: { eip155: treasury },
  reconcile: {},
  "deliver-webhook": {},
  // Reaches the signer, which an embedded one is only with the keys.
  "report-destinations": { eip155: treasury, solana: treasury },
  "check-pages": {},
  sweep: {},
};

/** Returns which keys of a chain a process needs that serves these queues. */
export function findNeededKeys(served: readonly QueueName[], chain: string): NeededKeys {
  const namespace = namespaceOf(chain);
  const needed = served.flatMap((queue) => (isNamespace(namespace) ? (keysOfQueue[queue][namespace] ?? []) : []));
  return { lanes: needed.some((keys) => keys.lanes), treasury: needed.some((keys) => keys.treasury) };
}

function isNamespace(name: string): name is Namespace {
  return name === "eip155" || name === "solana";
}
