import type { MutationGroup } from "./mutation.ts";

/** Mutations of the removal of history. */
export const retentionMutations: readonly MutationGroup[] = [
  {
    file: "db/migrations/initial/retention.sql",
    tests: ["test/integration/payments/maintenance/remove-history.test.ts"],
    mutations: [
      {
        name: "the history of a payment leaves before its payout",
        find: "or p.direct or p.mode = 'test' or exists (",
        replace: "or true or exists (",
      },
      {
        name: "the history of a payment leaves while a refund is open",
        find: "(r.state not in ('paid', 'marked', 'withdrawn') or r.updated_at >= before)",
        replace: "false",
      },
      {
        name: "the history of a payment with an unfinished transfer leaves",
        find: "and p.state in ('succeeded', 'failed', 'expired', 'cancelled')",
        replace: "",
      },
      {
        name: "a webhook event leaves before its delivery",
        find: "and not exists (select from webhook_delivery d where d.event_id = v.id and d.state = 'pending')",
        replace: "",
      },
      {
        name: "the newest event of a list leaves",
        find: "order by n.position limit 1) < oldest)",
        replace: "order by n.position limit 1) is distinct from oldest)",
      },
      {
        name: "moves leave while the payload of a webhook event names them",
        find: "where not exists (select from webhook_event v where v.payment_id = p.id)",
        replace: "where true",
      },
      {
        name: "a quote leaves before its chain was read",
        find: "(c.chain_time > p.expires_at + interval '1 hour') is not true",
        replace: "false",
      },
      {
        name: "a worker removes the history of the last week",
        find: "least(before, clock_timestamp() - interval '7 days')",
        replace: "before",
      },
    ],
  },
  {
    file: "payments/maintenance/remove-history.ts",
    tests: ["test/integration/payments/maintenance/remove-history.test.ts"],
    mutations: [
      {
        name: "rows leave that were not exported",
        find: "if (exportHistory && count > 0) await exportHistory(",
        replace: "if (exportHistory && count > 0) void exportHistory(",
      },
    ],
  },
];
