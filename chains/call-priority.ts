import { AsyncLocalStorage } from "node:async_hooks";

/**
 * What a call to an endpoint is for. `money`: broadcasts, confirmation, watching, and everything that no other priority
 * names. `verification`: accepting payments. `convenience`: options, gauges and prices.
 */
export type CallPriority = "money" | "verification" | "convenience";

const store = new AsyncLocalStorage<CallPriority>();

/** Runs work whose calls to endpoints have this priority. */
export function withCallPriority<T>(priority: CallPriority, work: () => T): T {
  return store.run(priority, work);
}

/** Returns the priority of the calls that the running work makes. */
export function readCallPriority(): CallPriority {
  return store.getStore() ?? "money";
}
