import { expect, test } from "vitest";
import { readRunbooks } from "../../../runbooks/read-runbooks.ts";
import { fillCommand } from "../../../runbooks/run-steps.ts";

const values = {
  networks: "/stack/networks.json",
  heads: "/stack/heads",
  pages: "http://127.0.0.1:1",
  payment: "pay_1",
};

test("the drill runs the check of the pages with a payment, as the runbooks write it", () => {
  const steps = readRunbooks().flatMap(({ adminCommands }) =>
    adminCommands.filter((one) => one.startsWith("pages check")),
  );
  expect(steps.length).toBeGreaterThan(0);
  for (const step of steps)
    expect(fillCommand(step, values)).toBe("pages check --url http://127.0.0.1:1 --payment pay_1");
});
