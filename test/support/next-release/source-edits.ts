/** Replaces a text that occurs exactly once in a file. */
export type SourceEdit = { file: string; find: string; replace: string };

/** What the next release changes: it uses what its migration adds, and its jobs have one more member. */
export const sourceEdits: readonly SourceEdit[] = [
  { file: "db/columns.ts", find: '  "cancelled_reason",\n', replace: '  "cancelled_reason",\n  "source",\n' },
  {
    file: "db/queries/payments.ts",
    find: "value, checkout,\n      state, created_at,",
    replace: "value, checkout,\n      source, state, created_at,",
  },
  {
    file: "db/queries/payments.ts",
    find: "      'requires_action', created_at, created_at,",
    replace: "      'next release', 'requires_action', created_at, created_at,",
  },
  {
    file: "db/grants/payment-grants.ts",
    find: '        "value",\n        "state",\n        "checkout",\n',
    replace: '        "value",\n        "state",\n        "source",\n        "checkout",\n',
  },
  {
    file: "db/grants/payment-grants.ts",
    find: "  payment_option: {\n",
    replace: "  attempt_origin: { worker: append, reader: read },\n  payment_option: {\n",
  },
  {
    file: "queues/catalog.ts",
    find: "const attemptRefs = z.object({\n",
    replace: "const attemptRefs = z.object({\n  confirmedBy: z.string().optional(),\n",
  },
  {
    file: "queues/catalog.ts",
    find: "      attemptIds: [...first.attemptIds,",
    replace: "      confirmedBy: first.confirmedBy,\n      attemptIds: [...first.attemptIds,",
  },
  {
    file: "payments/lifecycle/confirm-payment.ts",
    find: "attemptIds: [attempt.id] }, ...batching",
    replace: 'attemptIds: [attempt.id], confirmedBy: "wallet" }, ...batching',
  },
  {
    file: "workers/handlers.ts",
    find: '"verify-signature": (data) => verifyAll("verify-signature", data),',
    replace: `"verify-signature": async ({ confirmedBy, ...data }) => {
      if (confirmedBy !== undefined) await insertAttemptOrigins(deps.db, data.attemptIds, confirmedBy);
      return verifyAll("verify-signature", data);
    },`,
  },
  {
    file: "workers/handlers.ts",
    find: 'import type { Handlers, JobResult } from "../queues/consume.ts";',
    replace:
      'import { insertAttemptOrigins } from "../db/queries/attempt-origins.ts";\nimport type { Handlers, JobResult } from "../queues/consume.ts";',
  },
  {
    file: "api/checkout/client/checkout.ts",
    find: "startPaying();\n",
    replace: 'startPaying();\ndocument.documentElement.dataset["release"] = "next";\n',
  },
];
