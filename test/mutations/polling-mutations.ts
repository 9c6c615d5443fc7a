import type { MutationGroup } from "./mutation.ts";

/** Mutations of what status requests and long polls are answered from. */
export const pollingMutations: readonly MutationGroup[] = [
  {
    file: "api/polling/follow-moves.ts",
    tests: ["test/unit/api/polling/follow-moves.test.ts"],
    mutations: [
      {
        name: "after a long time without the database all moves since then are read in one statement",
        find: "last !== undefined && began - last.at > COMMIT_WITHIN_MS",
        replace: "last !== undefined && began < last.at",
      },
      {
        name: "moves that were not read after a time without the database are never noticed",
        find: "if (isLost || isRestored) {",
        replace: "if (isRestored) {",
      },
    ],
  },
  {
    file: "api/polling/waiters.ts",
    tests: ["test/unit/api/polling/waiters.test.ts"],
    mutations: [
      {
        name: "a long poll returns a status that its client has already seen",
        find: "status.stateVersion > after ? status",
        replace: "status.stateVersion >= after ? status",
      },
    ],
  },
  {
    file: "api/polling/watch-payments.ts",
    tests: ["test/integration/api/polling/lost-database.test.ts"],
    mutations: [
      {
        name: "a long poll misses a change of the time without the database",
        find: "waiters.wakeAll();",
        replace: "",
      },
    ],
  },
];
