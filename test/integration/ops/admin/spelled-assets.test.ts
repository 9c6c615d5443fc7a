import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { adminIn } from "../../../support/admin.ts";
import { execute } from "../../../support/execute-sql.ts";
import { createDatabase } from "../../../support/test-database.ts";

const databaseUrl = await createDatabase();
const admin = adminIn({ DATABASE_URL: databaseUrl, OPERATOR: "anna" });
const asset = "eip155:8453/erc20:0x833589fcd6edb6e08f4c7c32d4f71b54bda02913";
/** As explorers show it. */
const shown = "eip155:8453/erc20:0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
const lane = `0x${"ab".repeat(20)}`;

const correct = (on: string, debit = "losses") =>
  admin(
    ...["ledger", "correct", "--reference", randomUUID(), "--note", "a test"],
    ...["--debit", debit, "--credit", "treasury", "--amount", "5", "--asset", on],
  );

test("a correction in the spelling of an explorer is booked in the asset that the ledger has", async () => {
  expect(await correct(asset)).toMatchObject({ code: 0 });
  expect(await correct(shown)).toMatchObject({ code: 0 });
  for (const on of [asset, shown]) {
    const { stdout } = await admin("ledger", "balances", "--account", "losses", "--asset", on, "--json");
    expect(JSON.parse(stdout)).toEqual([{ account: "losses", asset, amount: "10" }]);
  }
});

test.each([
  ["USDC", "asset: expected a CAIP-19 asset such as eip155:8453/erc20:0x…"],
  [shown.replace("0x8", "0x7"), "asset: the address's checksum is wrong (EIP-55)"],
  ["eip155:8453/slip44:61", "asset: expected a token, such as eip155:8453/erc20:0x…"],
  ["cosmos:hub/slip44:118", "asset: its chain is of no known family"],
])("a correction in %s is refused: no entry of the ledger can be taken back", async (on, said) => {
  expect(await correct(on)).toEqual({ code: 2, stdout: "", stderr: `${said}\n` });
});

test("a correction of a lane with an open exception is refused however the lane's address is spelled", async () => {
  expect(await correct("eip155:8453/slip44:60", `lane:0x${"AB".repeat(20)}`)).toMatchObject({ code: 0 });
  await execute(
    databaseUrl,
    `with g as (insert into ledger_group (kind, subject, at, note) values ('unmatched', 'a', now(), 'left') returning id)
     insert into ledger_entry (group_id, account, asset, amount)
     select id, account, 'eip155:8453/slip44:60', amount from g, (values ('lane:${lane}', -5), ('exceptions', 5)) e (account, amount)`,
  );
  for (const address of [lane, `0x${"AB".repeat(20)}`])
    expect(await correct("eip155:8453/slip44:60", `lane:${address}`)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("has an open exception"),
    });
});

test.each([
  [["--unit", "USD", "--minimum", "100000"], "--unit: expected iso4217/ and a currency code, or caip19/ and an asset"],
  [["--unit", "iso4217/usd", "--minimum", "100000"], "--unit: is not a currency of ISO 4217"],
  [["--asset", "USDC"], "--asset: expected a CAIP-19 asset such as eip155:8453/erc20:0x…"],
])("a policy with %j is refused: it would ask no buyer for data", async (options, said) => {
  const set = ["--name", "Shop", "--merchant", "Corner", "--email", "c@example.test", "--scopes", "refunds"];
  const { merchantId } = JSON.parse((await admin("accounts", "set-up", ...set, "--json")).stdout) as {
    merchantId: string;
  };
  expect(await admin("policies", "add", merchantId, ...options)).toEqual({ code: 2, stdout: "", stderr: `${said}\n` });
  expect((await admin("policies", "list", merchantId)).stdout).toBe("none\n");
});

test("a deletion of buyer data that names no account of a chain is refused", async () => {
  expect(await admin("collected-data", "delete", "--account", lane)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--account: expected a CAIP-10 account"),
  });
});
