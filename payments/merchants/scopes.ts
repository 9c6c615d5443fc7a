import type { Scope } from "../../db/tables/account-tables.ts";

export type { Scope } from "../../db/tables/account-tables.ts";

/** What each scope of an API key permits. Decision: docs/decisions/api-keys.md. */
export const scopeDescriptions: Readonly<Record<Scope, string>> = {
  gateway: "what wallets do: options, confirm and status of any payment",
  "payments:read": "read and list payments, refunds, balances, statements and the requests of test mode",
  "payments:write": "create and cancel payments",
  refunds: "create and withdraw refunds",
  merchants: "read, create, change and delete merchants",
  settlements: "read and change settlement destinations",
  "settlements:approve":
    "decide changes of settlement destinations by signatures of approval keys, and manage these keys",
  webhooks: "manage webhook endpoints, read events and deliveries, and send events again",
  keys: "manage keys that can do no more than the key itself, and app ids",
};

/** Every scope of an API key. */
export const scopes = Object.keys(scopeDescriptions) as readonly Scope[];

/** Returns true for the name of a scope. */
export function isScope(text: string): text is Scope {
  return Object.hasOwn(scopeDescriptions, text);
}
