import { expect, test } from "vitest";
import { findApplyTime, planChange } from "../../../../payments/merchants/destination-rules.ts";

const at = new Date("2026-03-01T00:00:00Z");
const inThreeDays = new Date("2026-03-04T00:00:00Z");
const asset = `eip155:8453/erc20:0x${"a1".repeat(20)}`;
const [first, second] = [`eip155:8453:0x${"d1".repeat(20)}`, `eip155:8453:0x${"d2".repeat(20)}`];
const terms = { waiting_hours: 72, has_been_paid: false, first_change_at: null, known_assets: [] };
const threeDaysAgo = new Date("2026-02-26T00:00:00Z");
const added = { destinationId: "crypto_1", asset, before: null, after: first };

test.each([
  ["the first destination for an asset of a merchant that has not been paid", terms, added, at],
  ["the first destination of a merchant that has been paid", { ...terms, has_been_paid: true }, added, inThreeDays],
  [
    "another asset of a merchant that is three days old",
    { ...terms, first_change_at: threeDaysAgo },
    added,
    inThreeDays,
  ],
  ["a destination that was deleted and is added again", { ...terms, known_assets: [asset] }, added, inThreeDays],
  ["a changed destination", terms, { ...added, before: second }, inThreeDays],
  ["a changed destination of an account without a waiting period", { ...terms, waiting_hours: 0 }, added, at],
  ["a deletion", { ...terms, has_been_paid: true }, { ...added, before: first, after: null }, at],
])("%s applies at its time", (_what, of, change, expected) => {
  expect(findApplyTime(of, change, at)).toEqual(expected);
});

test.each([
  ["the account that applies, while another waits", { applied: first, waiting: second, wanted: first }, "withdraw"],
  ["the account that waits", { applied: first, waiting: second, wanted: second.replace("0xd2", "0xD2") }, "keep"],
  ["another account", { applied: first, waiting: null, wanted: second }, "request"],
  ["an account while an addition waits", { applied: null, waiting: first, wanted: second }, "request"],
])("a request for %s is recognised in any spelling", (_what, args, expected) => {
  expect(planChange(args)).toBe(expected);
});
