import type { MutationGroup } from "./mutation.ts";

/** Mutations of the reading of prices, and of what a payment that needs one does while they cannot be read. */
export const priceMutations: readonly MutationGroup[] = [
  {
    file: "payments/options/feed-readings.ts",
    tests: ["test/integration/payments/options/unreadable-prices.test.ts"],
    mutations: [
      {
        name: "every page view reads the price on chain",
        find: "kept && isKept(kept, now) ? kept : startReading(",
        replace: "startReading(",
      },
      {
        name: "a price is kept for longer than five seconds",
        find: "const KEPT_MS = 5_000;",
        replace: "const KEPT_MS = 5_001;",
      },
      {
        name: "an endpoint that hangs holds the options that need no price",
        find: 'return withTimeout(reading.state, Math.max(0, leftMs), () => new ChainError("rpc_unreachable", { detail }));',
        replace: "return detail && leftMs ? reading.state : reading.state;",
      },
    ],
  },
  {
    file: "payments/options/prices.ts",
    tests: ["test/integration/payments/options/unreadable-prices.test.ts"],
    mutations: [
      {
        name: "a price that cannot be read at the moment counts as one that does not exist",
        find: "if (isTransientChainError(err)) unread.set(currency, err);",
        replace: "",
      },
      {
        name: "a feed that is no feed counts as an outage",
        find: "if (isTransientChainError(err)) unread",
        replace: "unread",
        tests: ["test/integration/payments/options/prices.test.ts"],
      },
    ],
  },
  {
    file: "payments/options/list-options.ts",
    tests: ["test/integration/payments/options/unreadable-prices.test.ts"],
    mutations: [
      {
        name: "an account whose asset has no price at the moment seems to hold too little",
        find: "if (affordable.length === 0 && isPriceMissing) throw assets.outage;",
        replace: "",
      },
      {
        name: "an option is offered for which the merchant would be owed nothing",
        find: "if (row.owed_amount === 0n) continue;",
        replace: "",
        tests: ["test/integration/payments/payouts/refund-rounding.test.ts"],
      },
    ],
  },
  {
    file: "payments/options/candidates.ts",
    tests: ["test/integration/payments/options/unreadable-prices.test.ts"],
    mutations: [
      {
        name: "a valid quote is not offered while its price cannot be read",
        find: "[...priced, ...quoted]",
        replace: "priced",
      },
    ],
  },
  {
    file: "payments/lifecycle/create-payment.ts",
    tests: ["test/integration/payments/options/unreadable-prices.test.ts"],
    mutations: [
      {
        name: "a payment whose price cannot be read at the moment is refused for good",
        find: "if (payable.length === 0 && outage) throw outage;",
        replace: "",
      },
    ],
  },
  {
    file: "payments/lifecycle/simulate-payment.ts",
    tests: ["test/integration/payments/options/unreadable-prices.test.ts"],
    mutations: [
      {
        name: "a simulated success whose price cannot be read at the moment is refused for good",
        find: "if (!first && outage) throw outage;",
        replace: "",
      },
    ],
  },
  {
    file: "payments/lifecycle/checkout-view.ts",
    tests: ["test/integration/payments/options/unreadable-prices.test.ts"],
    mutations: [
      {
        name: "the page calls a payment unpayable while its price cannot be read",
        find: "[...payable, ...unpriced]",
        replace: "payable",
      },
    ],
  },
];
