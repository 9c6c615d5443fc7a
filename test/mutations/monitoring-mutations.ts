// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are code of other files.
import type { MutationGroup } from "./mutation.ts";

/** Mutations of what operators see: gauges, counters and the comparisons that alerts need. */
export const monitoringMutations: readonly MutationGroup[] = [
  {
    file: "payments/maintenance/chain-gauges.ts",
    tests: ["test/integration/transfers/evm/finality-jumps.test.ts"],
    mutations: [
      {
        name: "the lag of finality stays 0 while no block becomes final",
        find: "cursor - final),",
        replace: "0),",
      },
    ],
  },
  {
    file: "payments/maintenance/ledger-gauges.ts",
    tests: ["test/integration/payments/maintenance/gauges.test.ts"],
    mutations: [
      {
        name: "a chain that was never reconciled counts as just reconciled",
        find: "one.chain === chain)?.at ?? deps.startedAt),",
        replace: "one.chain === chain)?.at ?? now),",
      },
    ],
  },
  {
    file: "db/queries/gauges.ts",
    tests: ["test/integration/payments/maintenance/gauges.test.ts"],
    mutations: [
      {
        name: "a payout without a destination hides every later one that is overdue",
        find: "in ('no_destination', 'not_served', 'refund_pending'))`",
        replace: "in ('not_served', 'refund_pending'))`",
      },
      {
        name: "a refund that no balance covers hides every later one that is overdue",
        find: 'not ${isBlocked("balance_short", "inventory_short")}',
        replace: "true",
      },
      {
        name: "a refund that lacks inventory counts as overdue",
        find: 'not ${isBlocked("balance_short", "inventory_short")}',
        replace: 'not ${isBlocked("balance_short")}',
      },
      {
        name: "a refund that lacks inventory counts as one that no balance covers",
        find: "r.state = 'due' and ${isBlocked(\"balance_short\")}`",
        replace: 'r.state = \'due\' and ${isBlocked("balance_short", "inventory_short")}`',
      },
      {
        name: "a payout whose asset has left the networks file hides every later one that is overdue",
        find: "coalesce(q.blocked_by, '') = 'unknown_asset')`",
        replace: "false)`",
      },
      {
        name: "a payout on a chain that has left the networks file hides every later one that is overdue",
        find: "(q.chain <> all(",
        replace: "(false and q.chain <> all(",
      },
      {
        name: "an accumulating payout that an operator holds is overdue",
        find: "join merchant m on m.id = s.merchant_id and m.payouts_held_at is null\n        where s.due_at",
        replace: "join merchant m on m.id = s.merchant_id\n        where s.due_at",
      },
      {
        name: "a payout that fails in simulation hides every later one that is overdue",
        find: "t.settlement_id = s.id and t.state = 'ready'",
        replace: "t.settlement_id = s.id and false",
      },
      {
        name: "a chain that no worker has read since it was added is not behind",
        find: "coalesce(cursor.reached_head_at, cursor.created_at) as reached_head_at,",
        replace: "coalesce(cursor.reached_head_at, now()) as reached_head_at,",
      },
    ],
  },
  {
    file: "db/queries/payout-queue.ts",
    tests: ["test/integration/payments/maintenance/gauges.test.ts"],
    mutations: [
      {
        name: "payouts on a chain that has left the networks file have no alert",
        find: " and chain <> all(",
        replace: " and false and chain <> all(",
      },
    ],
  },
  {
    file: "payments/maintenance/payment-gauges.ts",
    tests: ["test/integration/payments/maintenance/gauges.test.ts"],
    mutations: [
      {
        name: "transfers that wait for the queue of contract wallets count as those of lanes",
        find: "isWallet: row.smart_wallet })",
        replace: "isWallet: false })",
      },
      {
        name: "payments on a chain that has left the networks file are never overdue",
        find: "[...new Set([...chains, ...overdue.map(({ chain }) => chain)])].map(",
        replace: "chains.map(",
      },
      {
        name: "events of slow endpoints count as those of fast ones",
        find: 'row.slow ? "deliver-slow-webhook" : "deliver-webhook"',
        replace: '"deliver-webhook"',
      },
    ],
  },
  {
    file: "db/queries/destination-reports.ts",
    tests: ["test/integration/payments/maintenance/unreported-destinations.test.ts"],
    mutations: [
      {
        name: "a rejection of an old change counts as not reported for days",
        find: "when 'rejected' then c.decided_at",
        replace: "",
      },
      {
        name: "the application of an old change counts as not reported for days",
        find: "when 'applied' then c.applied_at",
        replace: "",
      },
      {
        name: "a signed decision that the signer does not know has no age",
        find: "where s.reported_at is null and m.mode = 'live')",
        replace: "where false)",
      },
      {
        name: "a key that is not reported again has no age",
        find: "from approval_key k join merchant m on m.id = k.merchant_id where m.mode = 'live'),",
        replace: "from approval_key k join merchant m on m.id = k.merchant_id where false),",
      },
    ],
  },
  {
    file: "payments/lifecycle/payment-target.ts",
    tests: ["test/integration/payments/maintenance/gauges.test.ts"],
    mutations: [
      {
        name: "the target of a payment ignores how long its chain takes to be final",
        find: "getChainDriver(chain).finalityMs(network) + ALLOWED_MS",
        replace: "getChainDriver(chain).finalityMs(network) * 0 + ALLOWED_MS",
      },
    ],
  },
  {
    file: "workers/handlers.ts",
    tests: ["test/integration/workers/handlers.test.ts"],
    mutations: [
      {
        name: "a refused reconciliation is not logged",
        find: "if (!reconciled.ok)",
        replace: "if (false)",
      },
      {
        name: "a worker fails the jobs of a chain that only other workers have",
        find: "!deps.startedChains.has(chain) : !(await isGone(deps, chain))",
        replace: "!deps.startedChains.has(chain) : (await isGone(deps, chain)) && false",
      },
      {
        name: "a watcher's job waits for its row on a worker that does not have the chain",
        find: "return deps.chains.has(chain) ? done : { rerunInMs: OTHERS_AFTER_MS };",
        replace: "return done;",
      },
    ],
  },
  {
    file: "chains/evm/state-errors.ts",
    tests: ["test/unit/chains/evm/state-errors.test.ts"],
    mutations: [
      {
        name: "the revert of a contract counts as an endpoint without a state",
        find: "if (findRevertData(error) !== undefined) return false;",
        replace: "",
      },
      {
        name: "no other endpoint is asked for the state of a final block",
        find: "if (cause instanceof ChainError || !isStateMissing(cause)) return throwChainError(cause);",
        replace: "return throwChainError(cause);",
        tests: ["test/integration/payments/accounting/missing-states.test.ts"],
      },
    ],
  },
  {
    file: "transfers/initialize-counters.ts",
    tests: ["test/unit/transfers/initialize-counters.test.ts"],
    mutations: [
      {
        name: "lone confirmations of a chain with several endpoints do not start at 0",
        find: "if (countEndpoints(network) > 1) metrics.singleEndpointConfirmations.inc({ chain }, 0);",
        replace: "",
      },
    ],
  },
];
