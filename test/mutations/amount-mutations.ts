import type { MutationGroup } from "./mutation.ts";

/** Mutations of how amounts are shown to merchants and buyers. */
export const amountMutations: readonly MutationGroup[] = [
  {
    file: "api/checkout/pages/format-texts.ts",
    tests: ["test/unit/api/checkout/texts/languages.test.ts"],
    mutations: [
      {
        name: "the checkout page rounds amounts of currencies that people write with fewer decimals",
        find: "currency: display.assetSymbol, ...exact })",
        replace: "currency: display.assetSymbol, ...(exact && {}) })",
      },
      {
        name: "the first amount of a currency decides the decimals of the others",
        find: "options.minimumFractionDigits}",
        replace: "options.currency}",
      },
    ],
  },
  {
    file: "payments/lifecycle/read-payment.ts",
    tests: ["test/integration/api/merchant/delisted-assets.test.ts"],
    mutations: [
      {
        name: "minor units of an asset that has left the networks file are shown as whole units",
        find: "(await deps.assetUnits.find(asset)) ??",
        replace: "(null as { symbol: string; decimals: number } | null) ??",
      },
    ],
  },
  {
    file: "payments/lifecycle/list-payments.ts",
    tests: ["test/integration/api/merchant/delisted-assets.test.ts"],
    mutations: [
      {
        name: "a list by symbol lacks payments in an asset that has left the networks file",
        find: "return [...tokens, ...left].filter",
        replace: "return [...tokens, ...left.slice(left.length)].filter",
      },
    ],
  },
  {
    file: "payments/asset-units.ts",
    tests: ["test/integration/payments/asset-units.test.ts"],
    mutations: [
      {
        name: "every amount of an asset that has left the networks file costs a statement",
        find: "const known = units?.get(asset);",
        replace: "const known = undefined;",
      },
      {
        name: "every amount of an asset that no worker has reported costs a statement",
        find: "< RETRY_MS) return known;",
        replace: "< 0) return known;",
      },
    ],
  },
];
