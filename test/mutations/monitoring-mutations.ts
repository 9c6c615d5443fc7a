import type { MutationGroup } from "./mutation.ts";

/** Mutations of what operators see: gauges, counters and the comparisons that alerts need. */
export const monitoringMutations: readonly MutationGroup[] = [
  {
    file: "payments/maintenance/system-gauges.ts",
    tests: ["test/integration/transfers/evm/finality-jumps.test.ts"],
    mutations: [
      {
        name: "the lag of finality stays 0 while no block becomes final",
        find: "cursor - final),",
        replace: "0),",
      },
    ],
  },
];
