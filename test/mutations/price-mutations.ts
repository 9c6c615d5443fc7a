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
        find: 'return withTimeout(reading.found, Math.max(0, leftMs), () => new ChainError("rpc_unreachable", { detail }));',
        replace: "return detail && leftMs ? reading.found : reading.found;",
      },
      {
        name: "a price on which two endpoints disagree is used",
        find: "if (isConfirmed || countEndpoints(network) === 1) return undefined;",
        replace: "if (isConfirmed || other || countEndpoints(network) === 1) return undefined;",
        tests: ["test/integration/payments/options/price-agreement.test.ts"],
      },
      {
        name: "an endpoint that answers alone sets any price",
        find: "if (agreed && isSamePrice(agreed, state, MAX_DRIFT)) return undefined;",
        replace: "if (agreed) return undefined;",
        tests: ["test/integration/payments/options/price-agreement.test.ts"],
      },
      {
        name: "what an endpoint has shown alone moves the bound of the next price",
        find: "if (reading.isConfirmed || countEndpoints(chain.network) === 1) agreed.set(name, reading.state);",
        replace: "agreed.set(name, reading.state);",
        tests: ["test/integration/payments/options/price-agreement.test.ts"],
      },
      {
        name: "a price that one endpoint shows alone, and that is not used, is not counted",
        find: 'if (error?.code === "price_unconfirmed") metrics',
        replace: "if (!error) metrics",
        tests: ["test/integration/payments/options/price-agreement.test.ts"],
      },
      {
        name: "entries of a feed with other limits share a reading",
        find: "JSON.stringify(source);",
        replace: "source.feed + source.sequencer?.feed;",
        tests: ["test/integration/payments/options/price-agreement.test.ts"],
      },
    ],
  },
  {
    file: "payments/options/validate-price-feed.ts",
    tests: ["test/unit/payments/options/validate-price-feed.test.ts"],
    mutations: [
      {
        name: "a time that is none makes a price fresh",
        find: "if (!(age <= maxAgeSeconds * 1_000))",
        replace: "if (age > maxAgeSeconds * 1_000)",
      },
      {
        name: "a time that is none ends the grace period of a sequencer",
        find: "return seconds > graceSeconds ? undefined",
        replace: "return !(seconds <= graceSeconds) ? undefined",
      },
    ],
  },
  {
    file: "chains/endpoint-agreement.ts",
    tests: ["test/integration/payments/options/price-agreement.test.ts"],
    mutations: [
      {
        name: "endpoints that return prices of two feeds agree",
        find: "|| one.description !== other.description",
        replace: "",
      },
    ],
  },
  {
    file: "chains/evm/price-feeds.ts",
    tests: ["test/integration/payments/options/price-agreement.test.ts"],
    mutations: [
      {
        name: "endpoints whose prices differ by more than one percent agree",
        find: "const MAX_DIFFERENCE = 1n;",
        replace: "const MAX_DIFFERENCE = 2n;",
      },
      {
        name: "an error of the endpoint that is read first leaves a price unread",
        find: "if (isUnavailable(error)) throw error;",
        replace: "throw error;",
      },
      {
        name: "an error of a second endpoint leaves a price unread",
        find: "late).catch(() => undefined);",
        replace: "late);",
      },
      {
        name: "an endpoint that lags is compared in the order of the networks file",
        find: "of chain.listEndpointsInOrder())",
        replace: "of chain.endpoints)",
      },
      {
        name: "a price is compared only with that of the endpoint that is read first",
        find: "shown.find(({ value }) => agree(value, state))",
        replace: "shown.slice(0, 1).find(({ value }) => agree(value, state))",
      },
      {
        name: "of three endpoints the one that disagrees is not counted",
        find: "isConfirmed: true, disagreeing }",
        replace: "isConfirmed: true, disagreeing: [] }",
      },
      {
        name: "one endpoint alone decides by its times whether a price is used",
        find: " && isUsable(one) === isUsable(other)",
        replace: "",
      },
      {
        name: "an endpoint that shows a round of some hours ago disagrees",
        find: "isUsable(one) === isUsable(other)",
        replace: "one.updatedAt.getTime() === other.updatedAt.getTime()",
      },
      {
        name: "a time that no Date can hold is compared",
        find: "if (Number.isNaN(time.getTime())) throw",
        replace: "if (seconds < 0n) throw",
      },
    ],
  },
  {
    file: "ops/preflight/evm/prices.ts",
    tests: ["test/integration/ops/preflight/preflight.test.ts"],
    mutations: [
      {
        name: "preflight finds no fault in a price that no process would use",
        find: "if (unused) throw unused;",
        replace: "",
      },
      {
        name: "preflight finds no fault in endpoints of which one shows an old price",
        find: "const isUsable = (state: FeedState) => !validate(state);",
        replace: "const isUsable = () => true;",
      },
    ],
  },
  {
    file: "payments/lifecycle/paid-quotes.ts",
    tests: ["test/integration/payments/options/held-quotes.test.ts"],
    mutations: [
      {
        name: "a confirmed push pays at a price that ended hours ago",
        find: 'if (waitingSince && quote.kind !== "push") return true;',
        replace: "if (waitingSince) return true;",
      },
    ],
  },
  {
    file: "transfers/evm/verify-push.ts",
    tests: ["test/integration/payments/options/held-quotes.test.ts"],
    mutations: [
      {
        name: "a confirmed push is accepted in a block after the end of its price",
        find: "if (moveBy && ",
        replace: "if (moveBy && found.hash === signed.token && ",
      },
    ],
  },
  {
    file: "payments/lifecycle/verify-attempts.ts",
    tests: ["test/integration/payments/options/held-quotes.test.ts"],
    mutations: [
      {
        name: "a confirm waits for a pending push after the end of its price",
        find: "findQuoteEnd(option)?.getTime() ?? Infinity",
        replace: "Infinity",
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
      {
        name: "a price is validated at each use, with a time that two endpoints agreed on seconds ago",
        find: "const { state, error } = await readFeedState(deps, source);",
        replace:
          "const { state } = await readFeedState(deps, source); const error = validatePriceFeed(source, state, deps.now());",
        tests: ["test/integration/payments/options/price-agreement.test.ts"],
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
        name: "an authorization keeps its price for as long as the payment lives",
        find: "earlier(payment.expires_at, findQuoteEnd({ quoted_until: quotedUntil }))",
        replace: "earlier(payment.expires_at, findQuoteEnd({ quoted_until: null }))",
        tests: ["test/integration/payments/options/held-quotes.test.ts"],
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
  {
    file: "payments/options/quotes.ts",
    tests: ["test/integration/payments/options/delisted-owed-assets.test.ts"],
    mutations: [
      {
        name: "an option stays when the asset that its merchant would be owed has left the networks file",
        find: "isOwedDelisted || ",
        replace: "",
      },
    ],
  },
];
