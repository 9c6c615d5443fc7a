import { expect, test } from "vitest";
import { runAlongside } from "../../../runtime/alongside.ts";

const iterate = () => new Promise((resolve) => setImmediate(resolve));

/** A call that arrives when `begin` is resolved, then waits for the others, and records the order of these steps. */
function setUp() {
  const owner = {};
  const steps: string[] = [];
  const start = (name: string) => {
    const begin = Promise.withResolvers<void>();
    const ended = runAlongside(owner, async (arrive) => {
      await begin.promise;
      const others = arrive();
      steps.push(`${name} arrives`);
      await others();
      steps.push(`${name} continues`);
      return name;
    });
    return { ended, begin };
  };
  return { owner, steps, start };
}

test("a call continues when the calls that began before it has arrived have arrived or failed", async () => {
  const { steps, start, owner } = setUp();
  const failing = Promise.withResolvers<void>();
  const failed = runAlongside(owner, () => failing.promise);
  const [first, second] = [start("first"), start("second")];
  first.begin.resolve();
  await iterate();
  failing.reject(new Error("refused"));
  await expect(failed).rejects.toThrow("refused");
  expect(steps).toEqual(["first arrives"]);
  second.begin.resolve();
  expect(await Promise.all([first.ended, second.ended])).toEqual(["first", "second"]);
  expect(steps.slice(0, 2)).toEqual(["first arrives", "second arrives"]);
});

test("a call waits for none that begin later, nor for those of another owner", async () => {
  const { start } = setUp();
  const { start: startOther } = setUp();
  startOther("of another owner");
  const first = start("first");
  first.begin.resolve();
  await Promise.resolve();
  start("later");
  expect(await first.ended).toBe("first");
});
