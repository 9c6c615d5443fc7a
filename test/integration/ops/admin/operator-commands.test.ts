import { expect, test } from "vitest";
import { adminIn } from "../../../support/admin.ts";
import { openTestDb } from "../../../support/open-test-db.ts";
import { testKeys } from "../../../support/test-deps.ts";

async function setUp() {
  const { db, url } = await openTestDb(2);
  const as = (OPERATOR: string) => adminIn({ DATABASE_URL: url, TOTP_PUBLIC_KEY: testKeys.TOTP_PUBLIC_KEY, OPERATOR });
  const create = (by: string, name: string, role: string) => as(by)("operators", "new", name, "--role", role, "--json");
  return { db, as, create };
}

test("the first operator is an approver, who creates the others; their secrets are printed once and stored encrypted", async () => {
  const { db, as, create } = await setUp();
  expect(await create("root", "anna", "operator")).toMatchObject({
    code: 2,
    stderr: "role: the first operator must be an approver\n",
  });
  const { password, totp } = JSON.parse((await create("root", "anna", "approver")).stdout);
  expect(await create("root", "mallory", "approver")).toMatchObject({ code: 1 });
  expect(await create("anna", "vera", "viewer")).toMatchObject({ code: 0 });
  expect(await create("vera", "mallory", "viewer")).toMatchObject({
    code: 1,
    stderr: "OPERATOR: vera is a viewer; this needs the role approver\n",
  });
  expect(await create("anna", "vera", "viewer")).toMatchObject({ code: 2 });
  const stored = JSON.stringify([
    await db.selectFrom("operator").selectAll().execute(),
    await db.selectFrom("audit_entry").selectAll().execute(),
  ]);
  expect(stored).not.toContain(password);
  expect(stored).not.toContain(new URL(totp).searchParams.get("secret"));
  const listed = await as("anyone")("operators", "list", "--json");
  expect(JSON.parse(listed.stdout)).toMatchObject([
    { name: "anna", role: "approver", disabledAt: null },
    { name: "vera", role: "viewer", disabledAt: null },
  ]);
});

test("once there are operators, commands that change something need one with a role; commands that read do not", async () => {
  const { as, create } = await setUp();
  expect(await as("night watch")("accounts", "new", "--name", "Shop")).toMatchObject({ code: 0 });
  await create("root", "anna", "approver");
  await create("anna", "vera", "viewer");
  await create("anna", "olga", "operator");
  expect(await as("night watch")("accounts", "new", "--name", "Shop")).toMatchObject({
    code: 1,
    stderr: "OPERATOR: there is no operator night watch\n",
  });
  expect(await as("vera")("accounts", "new", "--name", "Shop")).toMatchObject({ code: 1 });
  expect(await as("olga")("accounts", "new", "--name", "Shop")).toMatchObject({ code: 0 });
  expect(await as("night watch")("accounts", "list")).toMatchObject({ code: 0 });
  expect(await as("anna")("operators", "disable", "olga")).toMatchObject({ code: 0 });
  expect(await as("olga")("accounts", "new", "--name", "Shop")).toMatchObject({ code: 1 });
});

test("the last approver can be neither disabled nor given another role", async () => {
  const { as, create } = await setUp();
  await create("root", "anna", "approver");
  for (const args of [
    ["disable", "anna"],
    ["role", "anna", "viewer"],
  ])
    expect(await as("anna")("operators", ...args)).toMatchObject({ code: 2, stderr: "anna is the last approver\n" });
  await create("anna", "berta", "approver");
  const both = await Promise.all([
    as("anna")("operators", "disable", "berta"),
    as("berta")("operators", "disable", "anna"),
  ]);
  expect(both.map(({ code }) => code).sort()).not.toEqual([0, 0]);
});
