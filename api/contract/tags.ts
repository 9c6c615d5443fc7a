/** The groups of operations in the document, each with the paths that it has. The first path that fits decides. */
const groups = [
  {
    name: "Gateway",
    paths: ["/v1/gateway/"],
    description: "What wallets call: the options of a payment, the wallet's actions, the confirm and the status.",
  },
  {
    name: "Refunds",
    paths: ["/v1/refunds"],
    description: "Money of a payment that goes back to its payer, in full or in part.",
  },
  {
    name: "Statements",
    paths: [
      "/v1/balances",
      "/v1/statement",
      "/v1/merchants/:merchantId/balances",
      "/v1/merchants/:merchantId/statement",
    ],
    description: "What merchants are owed, and the payments, fees, payouts and refunds that it results from.",
  },
  {
    name: "Settlements",
    paths: ["/v1/merchants/:merchantId/settlements", "/v1/merchants/:merchantId/approval-keys"],
    description: "Where a merchant is paid out to, the changes of that, and the keys that approve them.",
  },
  {
    name: "Payments",
    paths: ["/v1/payments", "/v1/merchant/payment", "/v1/merchants/payments"],
    description: "Payments of a merchant: creation, status, lists and cancellation.",
  },
  { name: "Merchants", paths: ["/v1/merchants"], description: "The merchants of an account, which receive payments." },
  {
    name: "API keys",
    paths: ["/v1/api-keys", "/v1/app-ids"],
    description: "The keys of an account, what each of them may do, and the app ids of its wallets.",
  },
  {
    name: "Webhooks",
    paths: ["/v1/webhook", "/v1/events"],
    description: "The endpoints that receive events, the events, and their deliveries.",
  },
  {
    name: "Request log",
    paths: ["/v1/request-logs"],
    description: "The latest requests of an account in test mode, for people who develop against the API.",
  },
] as const;

export type Tag = (typeof groups)[number]["name"];

/** Every group with its description, in the order of the document. */
export const tags = groups.map(({ name, description }) => ({ name, description }));

/** Returns the group of a path. Throws for a path of no group. */
export function tagOf(path: string): Tag {
  const found = groups.find(({ paths }) => paths.some((start) => path.startsWith(start)));
  if (!found) throw new Error(`${path} belongs to no group of operations (api/contract/tags.ts)`);
  return found.name;
}
