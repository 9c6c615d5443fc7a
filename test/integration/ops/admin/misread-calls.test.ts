import { expect, test } from "vitest";
import { adminIn } from "../../../support/admin.ts";
import { createDatabase } from "../../../support/test-database.ts";
import { testKeys } from "../../../support/test-deps.ts";

const admin = adminIn({ DATABASE_URL: await createDatabase(), ...testKeys, OPERATOR: "anna" });
const account = ["--account", "acct_0", "--mode", "live"];

test.each([
  ["merchants", "list", ...account],
  ["merchants", "list", "--deleted", ...account],
  ["merchants", "new", ...account, "--name", "Corner", "--email", "c@example.test"],
  ["webhooks", "list", ...account],
  ["webhooks", "events", ...account],
  ["payments", "list", "--account", "acct_0"],
])("%s %s says that there is no such account, in place of an empty list", async (...args) => {
  expect(await admin(...args)).toEqual({ code: 1, stdout: "", stderr: "there is no account acct_0\n" });
});

test.each([
  ["payments", "list"],
  ["refunds", "list"],
  ["destinations", "list"],
])("%s %s says that there is no such merchant, in place of an empty list", async (...command) => {
  const run = await admin(...command, "--merchant", "mrch_0");
  expect(run).toEqual({ code: 1, stdout: "", stderr: "there is no merchant mrch_0\n" });
});

test.each([
  ["collected-data", "show", "pay_0"],
  ["collected-data", "delete", "--payment", "pay_0"],
  ["refunds", "list", "--payment", "pay_0"],
  ["webhooks", "deliveries", "whe_0", "--payment", "pay_0"],
])("%s %s says that there is no such payment, and writes no audit entry", async (...args) => {
  expect(await admin(...args)).toEqual({ code: 1, stdout: "", stderr: "there is no payment pay_0\n" });
  expect((await admin("audit", "list", "--subject", "pay_0")).stdout).toBe("none\n");
});

test.each([
  [["--given-up", "--since", "2026-01-01T00:00:00Z"], "expected --event, --since or --given-up, and only one of them"],
  [["--event", "evt_0", "--given-up"], "expected --event, --since or --given-up, and only one of them"],
  [["--given-up", "--until", "2026-01-01T00:00:00Z"], "--until requires --since"],
  [["--event", ""], "expected --event, --since or --given-up, and only one of them"],
  [[], "expected --event, --since or --given-up, and only one of them"],
])("a replay with %j sends nothing: it does not say which events", async (options, said) => {
  const run = await admin("webhooks", "replay", "whe_0", ...options);
  expect(run).toEqual({ code: 2, stdout: "", stderr: `${said}\n` });
});

test("the rotation of a key to a time that has passed is refused: it would end the secret that a server uses", async () => {
  const { code, stderr } = await admin("api-keys", "rotate", "key_0", "--until", "2026-01-01");
  expect([code, stderr]).toEqual([2, "--until: is in the past; --now ends every former secret at once\n"]);
});
