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

/** What the handlers hand on to the rooms they call. */
export type WorkerDeps = PaymentDeps &
  TransferDeps & {
    keys: ReadonlyMap<string, EvmKeys>;
    verifier: Verifier;
    isTransient: (cause: unknown) => boolean;
    /** Runs what is done for several jobs at once: its lines and its rings are no single request's. */
    outOfContext: <T>(work: () => T) => T;
    /** Chains that have been compared with the networks file; more may come. Nothing is sent or believed before. */
    startedChains: ReadonlySet<string>;
    /** Looks at the buyers' pages as they are served. */
    checkPages: () => Promise<void>;
  };

/** How often what was kept for a while is deleted, seconds: with 5,000 rows at a time, faster than any can come in. */
const CLEAN_EVERY_S = 5;

/** How often it is looked whose books are to be compared with their chain, seconds. */
const RECONCILE_LOOK_S = 5;

/** How often the treasury's history on a Solana is listed, seconds. */
const HISTORY_EVERY_S = 2;

/** How often the buyers' pages are looked at, seconds. */
const PAGES_EVERY_S = 120;

const done: Outcome = { done: true };

/** One handler per queue of the catalogue, or it does not compile; each calls one step of a room. */
export function createHandlers(deps: WorkerDeps): Handlers {
  const relay = createRelay(deps);
  const relayWallets = createWalletRelay(deps);
  const submit = createSubmit(deps);
  const watch = createWatch(deps);
  const history = createHistoryReader(deps);
  const verify = createVerify(deps);
  /** Whatever a chain that has not started yet is owed, the sweep rings for again. */
  const mustWait = (chain: string) => deps.chains.has(chain) && !deps.startedChains.has(chain);

  /** An attempt whose payer turns out to be code is verified again, where no plain key waits for it. */
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
      return (await deps.outOfContext(() => relay(chain))) === "more" ? { again: 0 } : done;
    },
    "relay-wallet": async ({ chain }) => {
      if (mustWait(chain)) return done;
      return (await deps.outOfContext(() => relayWallets(chain))) === "more" ? { again: 0 } : done;
    },
    "submit-solana": async ({ chain }) => {
      if (mustWait(chain)) return done;
      return (await deps.outOfContext(() => submit(chain))) === "more" ? { again: 0 } : done;
    },
    "watch-chain": async ({ chain, block }, signal) => {
      if (mustWait(chain)) return done;
      const turn = await watch({ chain, signal });
      if (!turn.mine) return done;
      // New blocks set lanes and nonces free; whatever waits for one goes on.
      const ready = turn.waiting.map(({ id, smart_wallet }) => ({ chain, transferId: id, isWallet: smart_wallet }));
      await ringRelays(deps, ready);
      if (turn.next === block) return signal.aborted ? done : { again: 0 };
      await deps.ring("watch-chain", [{ data: { chain, block: turn.next } }]);
      return done;
    },
    "read-history": async ({ chain }) => {
      if (mustWait(chain)) return done;
      return (await deps.outOfContext(() => history(chain))) === "more" ? { again: 0 } : done;
    },
    "expire-payment": async ({ paymentId }) => {
      const expiry = await expirePayment(deps, paymentId);
      return expiry.decided ? done : { again: expiry.waitMs };
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
      (await deliverDue(deps, { endpointId, signal })) === "more" ? { again: 0 } : done,
    sweep: async ({ at }) => {
      if (at % HISTORY_EVERY_S === 0) await ringHistories(deps, at);
      await sweep(deps);
      if (at % CLEAN_EVERY_S === 0) await cleanUp(deps);
      if (at % RECONCILE_LOOK_S === 0) await ringReconciliations(deps);
      if (at % PAGES_EVERY_S === 0) await deps.ring("check-pages", [{ data: { at } }]);
      return done;
    },
    "check-pages": async () => {
      await deps.checkPages();
      return done;
    },
  };
}
