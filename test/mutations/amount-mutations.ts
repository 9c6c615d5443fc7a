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
];
