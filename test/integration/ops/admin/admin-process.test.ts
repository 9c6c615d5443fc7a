import { expect, test } from "vitest";
import { openDb } from "../../../../db/open.ts";
import { findCallerByApp, findCallerByKey } from "../../../../payments/merchants/callers.ts";
import { adminIn } from "../../../support/admin.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { runProgram } from "../../../support/run-program.ts";
import { createDatabase } from "../../../support/test-database.ts";

const url = await createDatabase();
const db = openDb(url, { max: 1 });
addCleanup(() => db.destroy());
const token = `0x${"ab".repeat(20)}`;

const env = { DATABASE_URL: url };
const admin = adminIn(env);
/** Runs the command as a separate process, as an operator does. */
const adminProcess = (...args: string[]) => runProgram("admin", args, env);
const scopes = ["--scopes", "payments:read,payments:write"];
const shop = [
  "accounts",
  "set-up",
  "--name",
  "Shop",
  "--merchant",
  "Corner",
  "--email",
  "shop@example.test",
  ...scopes,
];
const paidIn = (destination: string) => ["--asset", `eip155:1/erc20:${token}`, "--destination", destination];
const countAccounts = async () => (await db.selectFrom("account").select("id").execute()).length;

test("an operator creates an account whose key and app id work, and sees the key once", async () => {
  const { stdout } = await adminProcess(...shop, ...paidIn(`eip155:1:0x${"cd".repeat(20)}`), "--json");
  const { accountId, merchantId, apiKey, appId } = JSON.parse(stdout);
  const caller = await findCallerByKey({ db, now: () => new Date() }, { key: apiKey, address: "127.0.0.1" });
  expect(caller).toMatchObject({ ok: true, value: { accountId, mode: "live", scopes: scopes[1]?.split(",") } });
  expect(await findCallerByApp({ db }, appId)).toMatchObject({ accountId, scopes: ["gateway"] });
  const destinations = await db.selectFrom("settlement_destination").selectAll().execute();
  expect(destinations.map((row) => row.merchant_id)).toEqual([merchantId]);
});

test("a wrong call prints one sentence that names the option, and stores nothing", async () => {
  const before = await countAccounts();
  const wrong = [
    [["accounts", "set-up", "--name", "Shop"], "--merchant"],
    [shop.slice(0, -2), "--scopes"],
    [[...shop, "--scopes", "all"], "--scopes"],
    [[...shop, "--mode", "demo"], "--mode"],
    [[...shop, "--asset", `eip155:1/erc20:${token}`], "--destination"],
    [[...shop, ...paidIn(`eip155:2:0x${"cd".repeat(20)}`)], "another chain"],
    [[...shop, "--colour", "red"], "--colour"],
  ] as const;
  for (const [args, named] of wrong) {
    const { code, stderr } = await admin(...args);
    expect(code, named).toBe(2);
    expect(stderr).toContain(named);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  }
  expect(await adminProcess("accounts", "set-up", "--name", "Shop")).toMatchObject({ code: 2 });
  expect(await countAccounts()).toBe(before);
});
