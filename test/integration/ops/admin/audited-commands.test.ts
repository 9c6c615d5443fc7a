import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { insertAuditEntries } from "../../../../db/queries/audit-entries.ts";
import { createProgram } from "../../../../ops/admin/program.ts";
import { listExceptions, returnException } from "../../../../payments/accounting/resolve-exceptions.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { adminIn } from "../../../support/admin.ts";
import { makeApprovalKey } from "../../../support/approval-key.ts";
import { allEntries, digestTables, withoutAuditLog } from "../../../support/audited-changes.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { fundBuyer, networksFileFor, sendUsdc, startChain } from "../../../support/evm-chain.ts";
import { execute } from "../../../support/execute-sql.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { testKeys } from "../../../support/test-deps.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
const { db, accountId, merchantId } = fixture;
const admin = adminIn({
  DATABASE_URL: fixture.databaseUrl,
  ...testKeys,
  NETWORKS_FILE: await networksFileFor(chain),
  ALLOW_PRIVATE_ADDRESSES: "true",
  OPERATOR: "anna",
});
const owner = ["--account", accountId, "--mode", "live"];
const scoped = ["--scopes", "payments:read"];
const printed: string[] = [];

async function json(...args: string[]): Promise<Record<string, string>> {
  const { code, stdout, stderr } = await admin(...args, "--json");
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

/** Commands that change nothing. */
const reads = [
  "accounts list",
  "accounts show",
  "approval-keys list",
  "apps list",
  "audit export",
  "audit list",
  "audit verify",
  "collector show",
  "data-keys status",
  "destinations list",
  "disburser show",
  "exceptions list",
  "failed-bookings list",
  "fees list",
  "frames list",
  "api-keys list",
  "api-keys show",
  "ledger balances",
  "merchants list",
  "merchants show",
  "merchants statement",
  "networks check",
  "operators list",
  "pages check",
  "payments list",
  "payments show",
  "payouts blocked",
  "policies list",
  "refunds list",
  "retention status",
  "refunds show",
  "webhooks deliveries",
  "webhooks delivery",
  "webhooks events",
  "webhooks list",
  "webhooks show",
];

/** Commands of which chain-commands.test.ts, admin-commands.test.ts, data-keys.test.ts and lost-store.test.ts check the entries. */
const elsewhere = [
  "collected-data delete",
  "collector deploy",
  "data-keys reencrypt",
  "disburser approve",
  "disburser deploy",
  "payouts renew",
];

/**
 * Commands without an entry: the first keys are made before there is a database, the signer records its deposits and the
 * statements that it follows.
 */
const withoutEntry = [
  "data-keys new",
  "keystores new",
  "payouts claim-deposits",
  "statements approve-destination",
  "statements reject-destination",
  "statements revoke-approval-key",
];

/** Commands that write a file or sign something for the signer. */
const signing = ["operator-keys new", "payouts approve-withdrawal"];

const folder = await mkdtemp(join(tmpdir(), "operator-keys-"));
addCleanup(() => rm(folder, { recursive: true, force: true }));
const keyFile = join(folder, "anna.key");
const signed = ["--sign", keyFile, "--as", "anna"];

async function destinationId(): Promise<string> {
  const query = db.selectFrom("settlement_destination").select("id").where("merchant_id", "=", merchantId);
  return (await query.executeTakeFirstOrThrow()).id;
}

async function unknownMoney(): Promise<string> {
  await sendUsdc(chain, await fundBuyer(chain), chain.keys.treasury.address, 11n);
  await fixture.watch();
  return String((await listExceptions(fixture.deps, 100)).at(-1)?.id);
}

/** Returns the arguments that approve a refund of an exception, as the chain shows it. */
async function approvalOf(exceptionId: number): Promise<string[]> {
  const { id, receiver, tx_hash } = await db
    .selectFrom("refund as r")
    .innerJoin("ledger_group as g", "g.id", "r.exception_id")
    .select(["r.id", "r.receiver", "g.tx_hash"])
    .where("r.exception_id", "=", exceptionId)
    .executeTakeFirstOrThrow();
  const sent = ["--asset", chain.asset, "--amount", "11", "--receiver", receiver ?? "", "--transaction", tx_hash ?? ""];
  return ["refunds", "approve", id, ...sent, ...signed];
}

/** Requests a change that waits. Returns its id. */
async function waitingChange(digit: string): Promise<string> {
  await json("accounts", "destination-wait", accountId, "72");
  const to = `${chain.id}:0x${digit.repeat(40)}`;
  const { pendingChange } = await json("destinations", "change", merchantId, await destinationId(), "--to", to);
  await json("accounts", "destination-wait", accountId, "0");
  return (pendingChange as unknown as { changeId: string }).changeId;
}

let endpoints = 0;

async function newEndpoint(): Promise<string> {
  endpoints += 1;
  return (await json("webhooks", "new", ...owner, "--url", `http://127.0.0.1:9/${endpoints}`))["id"] ?? "";
}

const onDestination = (command: string) => async () => ["destinations", command, merchantId, await destinationId()];
const fixed =
  (...args: string[]) =>
  async () =>
    args;

await json("operator-keys", "new", keyFile);

/** For each command that changes something: prepares it, and returns its arguments after the command's name. */
const changes: Record<string, () => Promise<string[]>> = {
  "accounts set-up": fixed(
    ...["accounts", "set-up", "--name", "Shop", "--merchant", "Corner", "--email", "a@example.test", ...scoped],
  ),
  "accounts new": fixed("accounts", "new", "--name", "Second"),
  "accounts pin-version": fixed("accounts", "pin-version", accountId, "--version", "2026-02-19"),
  "accounts wallet-cancel": fixed("accounts", "wallet-cancel", accountId, "off"),
  "accounts destination-wait": fixed("accounts", "destination-wait", accountId, "24"),
  "api-keys new": fixed("api-keys", "new", ...owner, ...scoped),
  "api-keys rotate": async () => [
    "api-keys",
    "rotate",
    (await json("api-keys", "new", ...owner, ...scoped))["keyId"] ?? "",
  ],
  "api-keys revoke": async () => [
    "api-keys",
    "revoke",
    (await json("api-keys", "new", ...owner, ...scoped))["keyId"] ?? "",
  ],
  "approval-keys register": fixed("approval-keys", "register", merchantId, makeApprovalKey().publicKey),
  "approval-keys revoke": async () => {
    const { publicKey } = makeApprovalKey();
    await json("approval-keys", "register", merchantId, publicKey);
    return ["approval-keys", "revoke", merchantId, publicKey];
  },
  "apps new": fixed("apps", "new", ...owner),
  "apps revoke": async () => ["apps", "revoke", (await json("apps", "new", ...owner))["appId"] ?? ""],
  "merchants new": fixed("merchants", "new", ...owner, "--name", "Second", "--email", "b@example.test"),
  "merchants set-status": fixed("merchants", "set-status", merchantId, "active"),
  "merchants hold": fixed("merchants", "hold", merchantId),
  "merchants release": fixed("merchants", "release", merchantId),
  "destinations change": async () => [...(await onDestination("change")()), "--to", `${chain.id}:0x${"d1".repeat(20)}`],
  "destinations approve": async () => ["destinations", "approve", await waitingChange("a")],
  "destinations reject": async () => ["destinations", "reject", await waitingChange("b")],
  "destinations schedule": onDestination("schedule"),
  "destinations pay-immediately": onDestination("pay-immediately"),
  "destinations direct": onDestination("direct"),
  "destinations custodial": onDestination("custodial"),
  "destinations accept-other-assets": onDestination("accept-other-assets"),
  "destinations accept-own-asset": onDestination("accept-own-asset"),
  "refunds withdraw": async () => {
    const query = { actor: testActor, paymentId: await fixture.pay(await fundBuyer(chain)), mode: "live" as const };
    return ["refunds", "withdraw", unwrap(await refundPayment(fixture.deps, query)).refundId];
  },
  "refunds approve": async () => {
    const exception = Number(await unknownMoney());
    unwrap(await returnException(fixture.deps, { actor: testActor, id: exception }));
    return await approvalOf(exception);
  },
  "audit accept-signer": async () => {
    const entry = { actor: testActor, action: "signer_log.contradicted", subject: "signer-log", before: null };
    await insertAuditEntries(db, [{ ...entry, after: { head: null }, at: new Date() }]);
    return ["audit", "accept-signer"];
  },
  "policies add": fixed("policies", "add", merchantId),
  "policies remove": async () => ["policies", "remove", (await json("policies", "add", merchantId))["id"] ?? ""],
  "frames add": fixed("frames", "add", accountId, "https://wallet.example"),
  "frames remove": fixed("frames", "remove", accountId, "https://wallet.example"),
  "webhooks new": fixed("webhooks", "new", ...owner, "--url", "http://127.0.0.1:9/hook"),
  "webhooks change": async () => ["webhooks", "change", await newEndpoint(), "--status", "disabled"],
  "webhooks rotate": async () => ["webhooks", "rotate", await newEndpoint()],
  "webhooks test": async () => ["webhooks", "test", await newEndpoint()],
  "webhooks replay": async () => ["webhooks", "replay", await newEndpoint(), "--since", "2026-01-01T00:00:00Z"],
  "webhooks delete": async () => ["webhooks", "delete", await newEndpoint()],
  "payments retry": async () => ["payments", "retry", await fixture.create()],
  "collected-data show": async () => ["collected-data", "show", await fixture.create()],
  "failed-bookings retry": async () => {
    await execute(
      fixture.databaseUrl,
      `insert into failed_booking (chain, kind, subject, error, first_at, last_at, retry_at)
       values ('${chain.id}', 'transfer', 'trf_1', 'x', now(), now(), now() + interval '1 hour')`,
    );
    return ["failed-bookings", "retry", "--all"];
  },
  "exceptions assign": async () => [
    "exceptions",
    "assign",
    await unknownMoney(),
    "--payment",
    await fixture.create(),
    "--unnamed",
  ],
  "exceptions return": async () => ["exceptions", "return", await unknownMoney()],
  "ledger book-capital": async () => ["ledger", "book-capital", await unknownMoney(), "--note", "inventory"],
  "ledger book-cold": async () => ["ledger", "book-cold", await unknownMoney(), "--note", "back from cold"],
  "ledger book-loss": async () => ["ledger", "book-loss", await unknownMoney(), "--note", "dust"],
  "ledger correct": async () => {
    const accounts = ["--debit", "losses", "--credit", "operator_capital"];
    const amount = ["--asset", chain.asset, "--amount", "5"];
    return ["ledger", "correct", ...accounts, ...amount, "--reference", "OPS-1", "--note", "a test"];
  },
  "fees set": fixed("fees", "set", "--account", accountId, "--percent", "1"),
  "fees clear": fixed("fees", "clear", "--account", accountId),
  "destinations remove": onDestination("remove"),
  "destinations add": fixed(
    ...["destinations", "add", merchantId, "--asset", chain.asset, "--to", `${chain.id}:0x${"d3".repeat(20)}`],
  ),
  "operators new": fixed("operators", "new", "anna", "--role", "approver"),
  "operators role": async () => {
    await json("operators", "new", "berta", "--role", "viewer");
    return ["operators", "role", "berta", "operator"];
  },
  "operators reset-totp": fixed("operators", "reset-totp", "berta"),
  "operators disable": fixed("operators", "disable", "berta"),
};

/** Returns the names of all commands that do something, with those of their groups. */
function listCommands(command: Command, group: readonly string[] = []): string[] {
  return command.commands.flatMap((one) => {
    const path = [...group, one.name()];
    const own = one.commands.length === 0 ? [path.join(" ")] : [];
    return [...own, ...listCommands(one, path)];
  });
}

test("every command either changes nothing or is audited", () => {
  const io = { env: {}, write: () => undefined, writeError: () => undefined };
  expect([...reads, ...elsewhere, ...withoutEntry, ...signing, ...Object.keys(changes)].sort()).toEqual(
    listCommands(createProgram(io)).sort(),
  );
});

test.each(Object.entries(changes))(
  "%s writes an entry with its operator, or changes nothing",
  async (_name, prepare) => {
    const args = await prepare();
    const before = await digestTables(db);
    expect((await withoutAuditLog(db, () => admin(...args))).code).toBe(1);
    expect(await digestTables(db)).toBe(before);

    const count = (await allEntries(db)).length;
    const { code, stdout, stderr } = await admin(...args, "--json");
    expect([code, stderr]).toEqual([0, ""]);
    printed.push(stdout);
    const written = (await allEntries(db)).slice(0, -count);
    expect(written.length).toBeGreaterThanOrEqual(args[1] === "set-up" ? 4 : 1);
    for (const entry of written) expect(entry).toMatchObject({ actor_kind: "operator", actor_id: "anna" });
  },
);

test("a new key of an operator and an approval that it signs write an entry each", async () => {
  const of = ["--asset", chain.asset, "--amount", "5", "--receiver", `0x${"d4".repeat(20)}`, "--reference", "rent"];
  const { publicKey } = await json("operator-keys", "new", join(folder, "berta.key"));
  await json("payouts", "approve-withdrawal", ...of, ...signed);
  const written = (await allEntries(db)).slice(0, 2).map(({ action, subject }) => ({ action, subject }));
  expect(written).toContainEqual({ action: "operator_key.created", subject: publicKey });
  expect(written).toContainEqual({ action: "withdrawal.approved", subject: "rent" });
});

test("no entry contains a secret that a command printed: keys, webhook secrets, passwords and TOTP secrets", async () => {
  const values = printed.flatMap((text) => Object.entries(JSON.parse(text) as Record<string, unknown>));
  const secrets = values
    .filter(([name]) => ["apiKey", "secret", "password", "totp"].includes(name))
    .map(([, value]) => value);
  expect(secrets.length).toBeGreaterThanOrEqual(8);
  const text = JSON.stringify(await allEntries(db));
  for (const secret of secrets) expect(text).not.toContain(String(secret));
});
