/** One guard or rule that is removed from a source file. */
export type Mutation = {
  /** A unique sentence about what the mutated program does wrong. */
  name: string;
  /** Path from the root of the project. */
  file: string;
  /** The text to replace, which occurs exactly once in the file. */
  find: string;
  replace: string;
  /** The test files that should fail, the fastest first. */
  tests: readonly string[];
  /** Why no test can fail. Only for a mutation without an observable effect. */
  justification?: string;
};

/** Mutations of one file that share their tests. */
export type MutationGroup = {
  file: string;
  tests: readonly string[];
  mutations: readonly (Pick<Mutation, "name" | "find" | "replace" | "justification"> & { tests?: readonly string[] })[];
};

/** Returns the mutations of groups, each with its file and its tests. */
export function flattenGroups(groups: readonly MutationGroup[]): Mutation[] {
  return groups.flatMap(({ file, tests, mutations }) => mutations.map((one) => ({ file, tests, ...one })));
}

/** Returns the text with the mutation applied. Throws when its text does not occur exactly once. */
export function applyMutation(text: string, { name, file, find, replace }: Mutation): string {
  const times = text.split(find).length - 1;
  if (times !== 1) throw new Error(`"${name}": its text occurs ${times} times in ${file}, expected once: ${find}`);
  return text.replace(find, () => replace);
}

/** The result of a mutation. `broken`: it was not tested, because the changed code or a test file did not load. */
export type Result =
  | { outcome: "caught"; by: string }
  | { outcome: "survived" }
  | { outcome: "broken"; reason: string };

export type TestedMutation = { mutation: Mutation; result: Result };

/** The share of mutations that tests must catch. */
const LEAST_SHARE = 0.95;

/**
 * Returns the summary of a run, and whether it passes: at least 95 % are caught, each survivor has a justification, and
 * none is broken.
 */
export function summarize(tried: readonly TestedMutation[]): { passes: boolean; lines: string[] } {
  const of = (outcome: Result["outcome"]) => tried.filter(({ result }) => result.outcome === outcome);
  const [caught, survived, broken] = [of("caught"), of("survived"), of("broken")];
  const share = tried.length === 0 ? 0 : caught.length / tried.length;
  const lines = survived.map(
    ({ mutation }) => `survived: ${mutation.name} (${mutation.justification ?? "without a justification"})`,
  );
  for (const { mutation, result } of broken)
    lines.push(`broken: ${mutation.name} (${result.outcome === "broken" ? result.reason : ""})`);
  for (const { mutation } of caught)
    if (mutation.justification !== undefined)
      lines.push(`caught after all, its justification is to be deleted: ${mutation.name}`);
  lines.push(`${caught.length} of ${tried.length} mutations were caught: ${(share * 100).toFixed(1)} %`);
  const isJustified = survived.every(({ mutation }) => mutation.justification !== undefined);
  return { passes: tried.length > 0 && share >= LEAST_SHARE && isJustified && broken.length === 0, lines };
}
