import type { QueueName } from "../queues/catalog.ts";
import { namespaceOf } from "../runtime/caip-namespace.ts";

/**
 * What the jobs of a queue need on a chain: the keys of the lanes, the treasury's key, and the signer, which has the
 * treasury's key unless SIGNER is embedded.
 */
type Need = "lanes" | "treasury" | "signer";
type Namespace = "eip155" | "solana";

/**
 * What the jobs of each queue need, by chain family (CAIP-2 namespace). A new queue does not compile until it has an entry.
 */
const needsOfQueue: Readonly<Record<QueueName, Partial<Record<Namespace, readonly Need[]>>>> = {
  "verify-signature": {},
  "verify-contract-wallet": {},
  "relay-transfers": { eip155: ["lanes"] },
  "relay-contract-wallet": { eip155: ["lanes"] },
  "submit-solana": { solana: ["lanes", "treasury", "signer"] },
  // Replaces stuck transactions, and closes the markers of old payouts on Solana.
  "watch-chain": { eip155: ["lanes"], solana: ["lanes", "treasury", "signer"] },
  "read-history": {},
  "expire-payment": {},
  // On Solana the payout is only authorized; the transaction that makes it is signed later.
  settle: { eip155: ["treasury", "signer"], solana: ["signer"] },
  refund: { eip155: ["treasury", "signer"], solana: ["signer"] },
  reconcile: {},
  "move-excess": { eip155: ["signer"] },
  "deliver-webhook": {},
  "deliver-slow-webhook": {},
  "report-destinations": { eip155: ["signer"], solana: ["signer"] },
  "sum-payments": {},
  "check-pages": {},
  sweep: {},
};

/** Returns what a process needs on a chain that serves these queues. It opens nothing else. */
export function findNeeds(served: readonly QueueName[], chain: string): ReadonlySet<Need> {
  const namespace = namespaceOf(chain);
  return new Set(served.flatMap((queue) => (isNamespace(namespace) ? (needsOfQueue[queue][namespace] ?? []) : [])));
}

function isNamespace(name: string): name is Namespace {
  return name === "eip155" || name === "solana";
}
