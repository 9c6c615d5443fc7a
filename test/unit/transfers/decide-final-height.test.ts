import { expect, test } from "vitest";
import { decideFinalHeight } from "../../../transfers/decide-final-height.ts";

/** The heights that endpoints report. `down` also stands for one that has no final block. */
const heights = { honest: 100, behind: 99, stuck: 50, ahead: 1_000, down: undefined };
type Kind = keyof typeof heights;

const decide = (kinds: readonly Kind[]) =>
  decideFinalHeight(kinds.flatMap((kind) => (heights[kind] === undefined ? [] : [heights[kind]])));

test.each<[Kind[], number | undefined, number | undefined]>([
  // Endpoints, what counts at once, and what counts after the wait.
  [["down", "down"], undefined, undefined],
  [["honest", "down"], undefined, 100],
  [["honest", "honest"], 100, 100],
  [["honest", "behind"], 99, 100],
  [["honest", "stuck"], 50, 100],
  [["honest", "ahead"], 100, 1_000],
  [["honest", "down", "down"], undefined, 100],
  [["honest", "honest", "down"], 100, 100],
  [["honest", "stuck", "down"], 50, 100],
  [["honest", "ahead", "down"], 100, 1_000],
  [["honest", "honest", "honest"], 100, 100],
  [["honest", "honest", "behind"], 100, 100],
  [["honest", "honest", "stuck"], 100, 100],
  [["honest", "honest", "ahead"], 100, 100],
  [["honest", "behind", "ahead"], 100, 100],
  [["honest", "stuck", "ahead"], 100, 100],
  [["honest", "stuck", "stuck"], 50, 50],
  [["stuck", "stuck", "ahead"], 50, 50],
  [["honest", "ahead", "down", "down"], 100, 1_000],
  [["honest", "honest", "ahead", "down"], 100, 100],
  [["honest", "stuck", "ahead", "down"], 100, 100],
  [["honest", "stuck", "stuck", "down"], 50, 50],
  [["honest", "honest", "stuck", "ahead"], 100, 100],
  [["honest", "honest", "stuck", "stuck"], 100, 100],
  [["honest", "stuck", "stuck", "ahead"], 100, 100],
  [["stuck", "stuck", "stuck", "ahead"], 50, 50],
])("of the heights of endpoints that are %j, %s counts at once, and %s after the wait", (kinds, atOnce, afterWait) => {
  expect(decide(kinds)).toEqual({ atOnce, afterWait });
  expect(decide(kinds.toReversed()), "their order does not matter").toEqual({ atOnce, afterWait });
});

/** Returns every combination of endpoints. */
function combine(kinds: readonly Kind[], count: number): Kind[][] {
  if (count === 0) return [[]];
  return combine(kinds, count - 1).flatMap((rest) => kinds.map((kind) => [kind, ...rest]));
}
const combinations = [2, 3, 4].flatMap((count) => combine(["honest", "stuck", "ahead", "down"], count));

test("one endpoint that is ahead never decides while two others report a height", () => {
  for (const kinds of combinations) {
    const ahead = kinds.filter((kind) => kind === "ahead").length;
    const lower = kinds.filter((kind) => kind === "honest" || kind === "stuck").length;
    if (ahead === 1 && lower >= 2) expect(decide(kinds).afterWait, kinds.join()).toBeLessThanOrEqual(heights.honest);
  }
});

test("two honest endpoints decide at once, whatever one that is ahead and any that are stuck or down report", () => {
  for (const kinds of combinations) {
    const honest = kinds.filter((kind) => kind === "honest").length;
    const ahead = kinds.filter((kind) => kind === "ahead").length;
    if (honest >= 2 && ahead <= 1) expect(decide(kinds), kinds.join()).toEqual({ atOnce: 100, afterWait: 100 });
  }
});
