import { expect, test } from "vitest";
import type { Obstacle } from "../../../../db/queries/payout-queue.ts";
import { chooseObstacle } from "../../../../payments/payouts/dispatch-payouts.ts";

const cases: [shown: Obstacle | undefined, found: Obstacle[]][] = [
  ["chain_unavailable", ["inventory_short", "balance_short", "funds_short", "unrecorded_payout", "chain_unavailable"]],
  ["funds_short", ["inventory_short", "balance_short", "funds_short"]],
  ["unrecorded_payout", ["inventory_short", "unrecorded_payout", "funds_short"]],
  ["inventory_short", ["balance_short", "inventory_short", "minimum"]],
  ["balance_short", ["balance_short", "minimum"]],
  [undefined, []],
];

test.each(cases)("a queue shows %s when its payouts wait for %j", (shown, found) => {
  expect(chooseObstacle(found)).toBe(shown);
});
