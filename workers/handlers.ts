import type { EvmKeys } from "../chains/evm/signers/open.ts";
import { cleanUp } from "../payments/clean.ts";
import { deliverDue } from "../payments/deliver.ts";
import type { PaymentDeps } from "../payments/deps.ts";
import { expirePayment } from "../payments/expire.ts";
import { payBack, payOut } from "../payments/payout-queue.ts";
import { reconcileChain } from "../payments/reconcile.ts";
import { createRelay, createSubmit, createWalletRelay, ringRelays } from "../payments/relay.ts";
import { createVerify } from "../payments/verify-batches.ts";
import { createHistoryReader, createWatch } from "../payments/watch.ts";
import type { Handlers, Outcome } from "../queues/consume.ts";
import type { TransferDeps } from "../transfers/deps.ts";
import type { Verifier } from "../transfers/verify.ts";
import { ringHistories, ringReconciliations, sweep } from "./sweep.ts";

/** What the handlers pass to the modules that they call. */
export type WorkerDeps = PaymentDeps &
  TransferDeps & {
    keys: ReadonlyMap<string, EvmKeys>;
    verifier: Verifier;
    isTransient: (cause: unknown) => boolean;
    /** Runs work that serves several jobs: its log lines and jobs belong to no single request. */
    outOfContext: <T>(work: () => T) => T;
    /** Chains that match the networks file; the set grows. Nothing is sent to or read from other chains. */
    startedChains: ReadonlySet<string>;
    /** Compares the buyers' pages as they are served with the release. */
    checkPages: () => Promise<void>;
  };

/** Interval between deletions of rows past their retention, seconds. Each run deletes up to 5,000 rows. */
const CLEAN_EVERY_S = 5;

/** Interval between checks for chains whose reconciliation is due, seconds. */
const RECONCILE_EVERY_S = 5;

/** Interval between reads of the treasury's history on Solana, seconds. */
const HISTORY_EVERY_S = 2;

/** Interval between checks of the buyers' pages, seconds. */
const PAGES_EVERY_S = 120;

const done: Outcome = { done: true };
/** The handler stopped early although there is more to do, so that the worker can run other jobs in between. */
const rerun: Outcome = { rerunInMs: 0 };

/** Creates one handler for each queue of the catalog. Each handler calls one step of another module. */
export function createHandlers(deps: WorkerDeps): Handlers {
  const relay = createRelay(deps);
  const relayWallets = createWalletRelay(deps);
  const submit = createSubmit(deps);
  const watch = createWatch(deps);
  const history = createHistoryReader(deps);
  const verify = createVerify(deps);
  /** True while a chain has not started. The sweep enqueues its jobs again. */
  const mustWait = (chain: string) => deps.chains.has(chain) && !deps.startedChains.has(chain);

  /** Verifies attempts. An attempt whose payer is a contract goes to a queue of its own, so that plain keys do not wait. */
  const verifyAll = async (attemptIds: readonly string[]): Promise<Outcome> => {
    const ends = await Promise.allSettled(
      attemptIds.map(async (id) => {
        if ((await verify(id)) === "by code") await deps.ring("verify-wallet", [{ data: { attemptIds: [id] } }]);
      }),
    );
    for (const end of ends) if (end.status === "rejected") throw end.reason;
    return done;
  };

  return {
    "verify-signature": ({ attemptIds }) => verifyAll(attemptIds),
    "verify-wallet": ({ attemptIds }) => verifyAll(attemptIds),
    "relay-permit": async ({ chain }) => {
      if (mustWait(chain)) return done;
      return (await deps.outOfContext(() => relay(chain))) === "more" ? rerun : done;
    },
    "relay-wallet": async ({ chain }) => {
      if (mustWait(chain)) return done;
      return (await deps.outOfContext(() => relayWallets(chain))) === "more" ? rerun : done;
    },
    "submit-solana": async ({ chain }) => {
      if (mustWait(chain)) return done;
      return (await deps.outOfContext(() => submit(chain))) === "more" ? rerun : done;
    },
    "watch-chain": async ({ chain, block }, signal) => {
      if (mustWait(chain)) return done;
      const pass = await watch({ chain, signal });
      if (!pass.mine) return done;
      // New blocks free lanes and nonces, so transfers that wait for one can be relayed.
      const ready = pass.waiting.map(({ id, smart_wallet }) => ({ chain, transferId: id, isWallet: smart_wallet }));
      await ringRelays(deps, ready);
      if (pass.next === block) return signal.aborted ? done : rerun;
      await deps.ring("watch-chain", [{ data: { chain, block: pass.next } }]);
      return done;
    },
    "read-history": async ({ chain }) => {
      if (mustWait(chain)) return done;
      return (await deps.outOfContext(() => history(chain))) === "more" ? rerun : done;
    },
    "expire-payment": async ({ paymentId }) => {
      const expiry = await expirePayment(deps, paymentId);
      return expiry.decided ? done : { rerunInMs: expiry.waitMs };
    },
    settle: async ({ settlementIds }) => {
      await payOut(deps, settlementIds);
      return done;
    },
    refund: async ({ refundIds }) => {
      await payBack(deps, refundIds);
      return done;
    },
    reconcile: async ({ chain }) => {
      if (!mustWait(chain)) await reconcileChain(deps, { chain });
      return done;
    },
    "deliver-webhook": async ({ endpointId }, signal) =>
      (await deliverDue(deps, { endpointId, signal })) === "more" ? rerun : done,
    sweep: async ({ at }) => {
      if (at % HISTORY_EVERY_S === 0) await ringHistories(deps, at);
      await sweep(deps);
      if (at % CLEAN_EVERY_S === 0) await cleanUp(deps);
      if (at % RECONCILE_EVERY_S === 0) await ringReconciliations(deps);
      if (at % PAGES_EVERY_S === 0) await deps.ring("check-pages", [{ data: { at } }]);
      return done;
    },
    "check-pages": async () => {
      await deps.checkPages();
      return done;
    },
  };
}
