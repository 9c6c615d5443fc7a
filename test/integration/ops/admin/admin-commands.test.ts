import { expect, test } from "vitest";
import { storeCollected } from "../../../../payments/buyer-data/collected-data.ts";
import { addPolicy, removePolicy } from "../../../../payments/buyer-data/collection-policies.ts";
import { takeDueWork } from "../../../../payments/maintenance/take-due-rows.ts";
import { findCallerByApp } from "../../../../payments/merchants/callers.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { adminIn } from "../../../support/admin.ts";
import { fundBuyer, networksFileFor, startChain } from "../../../support/evm-chain.ts";
import { execute } from "../../../support/execute-sql.ts";
import { fixtureRequester, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { createDatabase } from "../../../support/test-database.ts";
import { testKeys } from "../../../support/test-deps.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
const environment = { DATABASE_URL: fixture.databaseUrl, ...testKeys, OPERATOR: "night watch" };
const admin = adminIn(environment);
async function json<T = Record<string, string>>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await admin(...args, "--json");
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as T;
}
const owner = ["--account", fixture.accountId, "--mode", "live"];

test("an operator creates, lists and shows an account and pins it to a newer version", async () => {
  const { accountId } = await json("accounts", "new", "--name", "Second");
  expect(await json<object[]>("accounts", "list")).toContainEqual(
    expect.objectContaining({ id: accountId, name: "Second" }),
  );
  expect(await json("accounts", "pin-version", accountId as string, "--version", "2026-02-19")).toMatchObject({
    version: "2026-02-19",
  });
  expect(await json("accounts", "show", accountId as string)).toMatchObject({ version: "2026-02-19", keys: 0 });
  expect(await admin("accounts", "pin-version", accountId as string, "--version", "2026-02-18")).toMatchObject({
    code: 1,
  });
});

test("an operator lets wallets cancel an account's payments, or the merchant alone", async () => {
  const { accountId = "" } = await json("accounts", "new", "--name", "Third");
  expect(await json("accounts", "show", accountId)).toMatchObject({ walletCancellationAllowed: true });
  expect(await json("accounts", "wallet-cancel", accountId, "off")).toMatchObject({ walletCancellationAllowed: false });
  expect(await json("accounts", "wallet-cancel", accountId, "on")).toMatchObject({ walletCancellationAllowed: true });
  expect(await admin("accounts", "wallet-cancel", accountId, "maybe")).toMatchObject({ code: 2 });
  expect(await admin("accounts", "wallet-cancel", "acct_0", "off")).toMatchObject({
    code: 1,
    stderr: "there is no account acct_0\n",
  });
  const actions = await fixture.db.selectFrom("audit_entry").selectAll().where("subject", "=", accountId).execute();
  expect(actions.map(({ action }) => action)).toContain("account.updated");
});

test("an app id works until an operator revokes it", async () => {
  const { appId } = await json<{ appId: string }>("apps", "new", ...owner);
  expect(await findCallerByApp(fixture.deps, appId)).toMatchObject({ accountId: fixture.accountId });
  await json("apps", "revoke", appId);
  expect(await findCallerByApp(fixture.deps, appId)).toBeUndefined();
  expect(await json<{ revokedAt: string | null }[]>("apps", "list", "--account", fixture.accountId)).toMatchObject([
    { revokedAt: expect.any(String) },
  ]);
  expect(await admin("apps", "revoke", "0")).toMatchObject({ code: 1, stderr: "no such app id\n" });
});

test("an operator creates, shows and removes a merchant, its destinations and its policies", async () => {
  const { merchantId = "" } = await json("merchants", "new", ...owner, "--name", "Corner", "--email", "c@example.test");
  const to = `${chain.id}:0x${"cd".repeat(20)}`;
  const added = await json<{ id: string }>("destinations", "add", merchantId, "--asset", chain.asset, "--to", to);
  expect(await admin("destinations", "add", merchantId, "--asset", chain.asset, "--to", to)).toMatchObject({ code: 1 });
  expect(await admin("destinations", "add", merchantId, "--asset", chain.asset, "--to", "eip155:1:0x00")).toMatchObject(
    { code: 2 },
  );
  const { id: policy = "" } = await json("policies", "add", merchantId, "--unit", "iso4217/USD", "--minimum", "1000");
  const shown = await admin("merchants", "show", merchantId);
  for (const part of ["Corner", to, "from 1000 iso4217/USD"]) expect(shown.stdout).toContain(part);
  expect(await json("merchants", "set-status", merchantId, "suspended")).toMatchObject({ status: "suspended" });
  expect(await admin("merchants", "set-status", merchantId, "gone")).toMatchObject({ code: 2 });
  await json("policies", "remove", policy);
  await json("destinations", "remove", merchantId, added.id);
  expect(await json("merchants", "show", merchantId)).toMatchObject({ settlements: [], policies: [] });
});

test("an operator accumulates, holds and releases a merchant's payouts and reads its former destinations", async () => {
  const { merchantId = "" } = await json("merchants", "new", ...owner, "--name", "Slow", "--email", "s@example.test");
  const to = (byte: string) => `${chain.id}:0x${byte.repeat(20)}`;
  const { id = "" } = await json("destinations", "add", merchantId, "--asset", chain.asset, "--to", to("cd"));
  const scheduleArgs = ["destinations", "schedule", merchantId, id];
  expect(await admin(...scheduleArgs)).toMatchObject({ code: 2, stderr: expect.stringContaining("NETWORKS_FILE") });
  expect(await json(...scheduleArgs, "--amount", "5000", "--minimum", "100")).toMatchObject({
    seconds: 600,
    amount: "5000",
    minimum: "100",
  });
  expect(await admin(...scheduleArgs, "--amount", "5", "--minimum", "6")).toMatchObject({ code: 2 });
  expect(await json("destinations", "pay-immediately", merchantId, id)).toMatchObject({ seconds: null, minimum: null });
  expect(await json("merchants", "hold", merchantId)).toMatchObject({ heldSince: expect.any(String) });
  expect((await admin("merchants", "show", merchantId)).stdout).toMatch(/^payouts held since 20.+Z$/m);
  const second = await admin("merchants", "hold", merchantId);
  expect(second, "another operator's hold").toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/held since 20.+Z/),
  });
  const listed = (await json("merchants", "list", ...owner)) as unknown as Record<string, string>[];
  expect(listed.find(({ id }) => id === merchantId)).toMatchObject({ payoutsHeldSince: expect.any(String) });
  expect(listed.filter(({ payoutsHeldSince }) => payoutsHeldSince !== null)).toHaveLength(1);
  expect(await json("merchants", "release", merchantId)).toMatchObject({ heldSince: null });
  expect(await admin("merchants", "release", merchantId)).toMatchObject({ code: 1, stdout: "" });
  await json("destinations", "change", merchantId, id, "--to", to("ce"));
  expect(await json("destinations", "list", "--merchant", merchantId)).toMatchObject([
    { previousDestination: to("cd"), destination: to("ce"), status: "applied", requestedBy: "operator night watch" },
    { previousDestination: null, destination: to("cd"), status: "applied" },
  ]);
});

test("an operator sets how long changes of destinations wait, and approves and rejects those that wait", async () => {
  const { merchantId = "" } = await json("merchants", "new", ...owner, "--name", "Wary", "--email", "w@example.test");
  const to = (byte: string) => `${chain.id}:0x${byte.repeat(20)}`;
  const { id = "" } = await json("destinations", "add", merchantId, "--asset", chain.asset, "--to", to("cd"));
  const change = async (byte: string): Promise<string> => {
    await json("destinations", "change", merchantId, id, "--to", to(byte));
    const waiting = ["destinations", "list", "--merchant", merchantId, "--state", "requested"];
    const [{ changeId }] = (await json(...waiting)) as unknown as [{ changeId: string }];
    return changeId;
  };
  const wait = (hours: string) => admin("accounts", "destination-wait", fixture.accountId, hours);
  expect(await wait("soon")).toMatchObject({ code: 2 });
  expect(await wait("72")).toMatchObject({ code: 0, stdout: expect.stringContaining("72") });
  const first = await change("ce");
  expect((await admin("merchants", "show", merchantId)).stdout).toContain(`to ${to("ce")} (${first})`);
  expect(await json("destinations", "approve", first)).toMatchObject({ status: "applied", destination: to("ce") });
  const second = await change("cf");
  expect(await json("destinations", "reject", second)).toMatchObject({
    status: "rejected",
    decidedBy: "operator night watch",
  });
  expect(await admin("destinations", "approve", second)).toMatchObject({
    code: 1,
    stderr: "the change is rejected\n",
  });
  expect(await admin("destinations", "approve", "dchg_0")).toMatchObject({ code: 1 });
  expect((await admin("merchants", "show", merchantId)).stdout).toContain(to("ce"));
  await wait("0");
});

test("an operator adds, lists and removes sites that may frame the data page, and each change is recorded", async () => {
  const origin = "https://wallet.example";
  expect(await json("frames", "list", fixture.accountId)).toEqual([]);
  expect(await json("frames", "add", fixture.accountId, origin)).toMatchObject([{ origin }]);
  expect((await admin("frames", "list", fixture.accountId)).stdout).toContain(origin);
  expect(await admin("frames", "add", fixture.accountId, "https://wallet.example/page")).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^origin: expected one such as https:\/\/wallet\.example/),
  });
  expect(await admin("frames", "add", "acct_0", origin)).toMatchObject({
    code: 1,
    stderr: "there is no account acct_0\n",
  });
  expect(await json("frames", "remove", fixture.accountId, origin)).toEqual([]);
  expect(await admin("frames", "remove", fixture.accountId, origin)).toMatchObject({
    code: 1,
    stderr: `${origin} is not an allowed origin of ${fixture.accountId}\n`,
  });
  const actions = await fixture.db
    .selectFrom("audit_entry")
    .selectAll()
    .where("subject", "=", fixture.accountId)
    .execute();
  for (const action of ["frame_origin.added", "frame_origin.removed"])
    expect(actions).toContainEqual(expect.objectContaining({ action, actor_id: "night watch" }));
});

test("an operator registers, shows, rotates and deletes a webhook endpoint, and its secret is not shown again", async () => {
  const set = ["webhooks", "new", ...owner, "--url"];
  expect(await admin(...set, "http://shop.example/hooks")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("https"),
  });
  const { secret = "", id = "" } = await json(...set, "https://shop.example/hooks");
  expect(secret).toMatch(/^whsec_/);
  const shown = await admin("webhooks", "show", id);
  expect(shown.stdout).toContain("https://shop.example/hooks");
  expect(shown.stdout).not.toContain(secret);
  const { secret: second } = await json("webhooks", "rotate", id);
  expect(second).not.toBe(secret);
  expect(await json("webhooks", "show", id)).toMatchObject({ previousUntil: expect.any(String) });
  expect(await admin("webhooks", "rotate", id)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^the secret before the last rotation works until .+; use --now/),
  });
  expect((await json("webhooks", "rotate", "--now", id))["secret"]).not.toBe(second);
  expect(await json("webhooks", "show", id)).toMatchObject({ previousUntil: null });
  const change = ["webhooks", "change", id, "--types", "payment.created,payment.succeeded", "--payload", "thin"];
  expect(await json(...change)).toMatchObject({
    eventTypes: ["payment.created", "payment.succeeded"],
    payload: "thin",
  });
  expect(await json<object[]>("webhooks", "list", ...owner)).toMatchObject([{ id, byOperator: true }]);
  await fixture.create();
  expect(await json<object[]>("webhooks", "deliveries", id, "--state", "pending")).toMatchObject([
    { type: "payment.created" },
  ]);
  const events = await json<{ items: { id: string; type: string }[] }>("webhooks", "events", ...owner);
  const created = events.items.findLast(({ type }) => type === "payment.created");
  expect(await json("webhooks", "delivery", id, created?.id ?? "")).toMatchObject({ payload: { id: created?.id } });
  expect(await admin("webhooks", "replay", id)).toMatchObject({ code: 2 });
  expect(await json("webhooks", "replay", id, "--given-up")).toEqual({ count: 0 });
  await json("webhooks", "delete", id);
  expect(await admin("webhooks", "show", id)).toMatchObject({ code: 1 });
});

test("an operator reads everything that happened to a payment, up to the ledger", async () => {
  const id = await fixture.pay(await fundBuyer(chain), 250n);
  await fixture.settle((await fixture.settlementOf(id)).id);
  await fixture.relay();
  await fixture.watch();
  const { stdout } = await admin("payments", "show", id);
  const hashes = (await fixture.db.selectFrom("transaction").select("hash").execute()).map(({ hash }) => hash);
  for (const part of [
    id,
    "requires_action > processing",
    "processing > succeeded",
    "due > paying",
    ...hashes,
    "treasury",
    "History",
    "Ledger",
  ])
    expect(stdout).toContain(part);
  const report = await json<Record<string, unknown[]>>("payments", "show", id);
  expect(report).toMatchObject({ payment: { id, state: "succeeded" }, settlement: { state: "paid" } });
  for (const part of ["moves", "attempts", "transfers", "transactions", "ledger"])
    expect(report[part]?.length).toBeGreaterThan(0);
  expect(
    await json<object[]>("payments", "list", "--state", "succeeded", "--account", fixture.accountId),
  ).toMatchObject([{ id }]);
  expect(await json<object[]>("payments", "list", "--since", "2099-01-01T00:00:00Z")).toEqual([]);
});

test("payments show finds a payment by whatever belongs to it, and lists several", async () => {
  const [id, other] = [await fixture.create(undefined, { referenceId: "order-4711" }), await fixture.create()];
  for (const paymentId of [id, other]) await fixture.verify(await fixture.attempt(paymentId, await fundBuyer(chain)));
  await fixture.relay();
  await fixture.watch();
  const { db } = fixture;
  const attempt = await db.selectFrom("attempt").selectAll().where("payment_id", "=", id).executeTakeFirstOrThrow();
  const transfer = await db.selectFrom("transfer").selectAll().where("payment_id", "=", id).executeTakeFirstOrThrow();
  const settlement = await fixture.settlementOf(id);
  for (const name of [id, attempt.id, attempt.option_id, transfer.id, settlement.id, "order-4711"])
    expect(await json<object>("payments", "show", name), name).toMatchObject({ payment: { id } });
  // Both were transferred in one transaction.
  const { tx_id: hash } = await db.selectFrom("payment").select("tx_id").where("id", "=", id).executeTakeFirstOrThrow();
  const listed = await json<{ id: string }[]>("payments", "show", String(hash));
  expect(listed.map(({ id }) => id).sort()).toEqual([id, other].sort());
  // A reference that looks like a member of every object.
  const named = await fixture.create(undefined, { referenceId: "constructor_7" });
  expect(await json<object>("payments", "show", "constructor_7")).toMatchObject({ payment: { id: named } });
  const unknown = await admin("payments", "show", "order-4712");
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining("there is no payment order-4712") });
});

test("retry makes overdue work due now, and nothing else", async () => {
  const id = await fixture.create();
  const attempt = await fixture.attempt(id, await fundBuyer(chain));
  const late = new Date(Date.now() + 3_600_000);
  await fixture.db.updateTable("attempt").set({ due_at: late }).where("id", "=", attempt).execute();
  expect(await takeDueWork(fixture.deps, "attempts")).toEqual([]);
  expect(await json<object>("payments", "retry", id)).toMatchObject({ attempts: 1, transfers: 0 });
  expect(await takeDueWork(fixture.deps, "attempts")).toMatchObject([{ id: attempt }]);
  await fixture.verify(attempt);
  await fixture.db
    .updateTable("transfer")
    .set({ due_at: late, hold_until: late })
    .where("payment_id", "=", id)
    .execute();
  const [lane] = chain.keys.lanes;
  const withNetworks = adminIn({ ...environment, NETWORKS_FILE: await networksFileFor(chain) });
  const lanesOf = async () => JSON.parse((await withNetworks("payments", "show", id, "--json")).stdout).lanes;
  expect(await lanesOf()).toMatchObject([{ lane: lane?.address.toLowerCase(), enough: true }]);
  const balance = await chain.client.getBalance({ address: lane?.address ?? "0x" });
  await chain.client.setBalance({ address: lane?.address ?? "0x", value: 5n });
  expect(await lanesOf()).toMatchObject([{ balance: "5", needs: expect.any(String), enough: false }]);
  expect((await withNetworks("payments", "show", id)).stdout).toMatch(/^Lanes\n[\s\S]* 0\.000000000000000005 \S/m);
  const unreachable = await networksFileFor(chain, { rpcUrls: ["http://127.0.0.1:1"] });
  const cut = await adminIn({ ...environment, NETWORKS_FILE: unreachable })("payments", "show", id, "--json");
  expect(JSON.parse(cut.stdout).lanes).toEqual([
    { chain: chain.id, lane: lane?.address.toLowerCase(), error: "its funds cannot be read" },
  ]);
  await chain.client.setBalance({ address: lane?.address ?? "0x", value: balance });
  expect((await admin("payments", "retry", id)).stdout).toBe("1 transfers due now\n");
  await fixture.relay();
  await fixture.watch();
  expect((await fixture.status(id)).state).toBe("succeeded");
  expect((await admin("payments", "retry", await fixture.create())).stdout).toBe("nothing is due\n");
  await json("merchants", "hold", fixture.merchantId);
  expect((await admin("payments", "retry", id)).stdout).toMatch(
    /^payouts to the merchant are held since 20.+Z: nothing is paid out until `merchants release`$/m,
  );
  expect((await admin("payments", "show", id)).stdout).toMatch(/^payoutsHeldSince +20.+Z$/m);
  await json("merchants", "release", fixture.merchantId);
  expect(await admin("payments", "retry", "pay_0")).toMatchObject({ code: 1, stderr: "there is no payment pay_0\n" });
});

test("the retry of a payment makes its refund due, and the obstacle of the refund's queue is checked again", async () => {
  const paymentId = await fixture.pay(await fundBuyer(chain));
  unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId, mode: "live" }));
  const { merchantId } = fixture;
  const blocked = { blocked_by: "paused", blocked_at: fixture.deps.now(), due_at: new Date(Date.now() + 600_000) };
  const queue = fixture.db
    .updateTable("payout_queue")
    .where("kind", "=", "refund")
    .where("merchant_id", "=", merchantId);
  await queue.set(blocked).execute();
  expect((await admin("payments", "retry", paymentId)).stdout).toContain("1 refunds due now\n");
  const waiting = fixture.db.selectFrom("payout_queue").select(["blocked_by", "due_at"]).where("kind", "=", "refund");
  const [row] = await waiting.where("merchant_id", "=", merchantId).execute();
  expect(row?.blocked_by).toBeNull();
  expect(row?.due_at?.getTime()).toBeLessThanOrEqual(fixture.deps.now().getTime());
});

/** Creates a payment for which a buyer has posted their data. Returns its id. */
async function postData(buyer: { address: string }): Promise<string> {
  const id = await fixture.create();
  const every = { merchantId: fixture.merchantId, asset: null, unit: null, minimum: null };
  const { id: policyId } = await addPolicy(fixture.deps, { ...every, actor: testActor });
  const [offered] = await fixture.offer(id, buyer);
  await removePolicy(fixture.deps, { actor: testActor, id: policyId });
  const asked = {
    paymentId: id,
    mode: fixture.mode,
    optionId: offered?.id ?? "",
    requester: fixtureRequester,
    keepMs: 60_000,
  };
  const fields = {
    fullName: "Zoë",
    dob: "1990-02-28",
    porCountry: "SE",
    porAddress: "Uppsala 17",
    tosConfirmed: "true",
  };
  const given = Object.entries(fields).map(([name, value]) => ({ id: name, value }));
  expect(await storeCollected(fixture.deps, { ...asked, fields: given })).toMatchObject({ ok: true });
  return id;
}

test("an operator reads a buyer's data, and the access is recorded", async () => {
  const id = await postData(await fundBuyer(chain));
  const { stdout } = await admin("collected-data", "show", id);
  expect(stdout).toContain("Zoë");
  // Nothing has been signed, so the data is not proven to be the payer's.
  expect(stdout).toMatch(/proven +false/);
  const actions = await fixture.db.selectFrom("audit_entry").selectAll().where("subject", "=", id).execute();
  expect(actions).toMatchObject([{ actor_id: "night watch", action: "collected_data.read" }]);
});

test("an operator deletes the data of a payment's buyer, or of an account in all payments, and nothing else", async () => {
  const [one, two, stranger] = [await fundBuyer(chain), await fundBuyer(chain), await fundBuyer(chain)];
  const posted = [await postData(one), await postData(two), await postData(two), await postData(stranger)];
  const [first = "", ...ofTwo] = posted;
  expect(await json("collected-data", "delete", "--payment", first)).toEqual([{ paymentId: first, rows: 1 }]);
  const account = `${chain.id}:${two.address}`;
  const deleted = await json<object[]>("collected-data", "delete", "--account", account);
  expect(deleted).toHaveLength(2);
  for (const paymentId of ofTwo.slice(0, 2)) expect(deleted).toContainEqual({ paymentId, rows: 1 });
  const shown = await Promise.all(posted.map((id) => json<object[]>("collected-data", "show", id)));
  expect(shown.map(({ length }) => length)).toEqual([0, 0, 0, 1]);
  const entries = await fixture.db
    .selectFrom("audit_entry")
    .select(["actor_id", "subject", "before"])
    .where("action", "=", "collected_data.deleted")
    .execute();
  expect(entries.map(({ subject }) => subject).toSorted()).toEqual(posted.slice(0, 3).toSorted());
  expect(entries[0]).toMatchObject({ actor_id: "night watch", before: { rows: 1 } });
  expect(JSON.stringify(entries)).not.toContain(two.address);
  expect(await json("collected-data", "delete", "--payment", first)).toEqual([]);
  expect(await admin("collected-data", "delete")).toMatchObject({ code: 2 });
});

test.each([
  [["nothing"], "unknown command 'nothing'"],
  [["payments", "show"], "missing required argument 'id'"],
  [["payments", "list", "--state", "paid"], "--state"],
  [["payments", "list", "--limit", "0"], "--limit"],
  [["api-keys", "new", "--mode", "live"], "--account"],
])("a wrong call %j exits with 2 and prints one sentence", async (args, said) => {
  const run = await admin(...args);
  expect(run).toMatchObject({ code: 2, stdout: "" });
  expect(run.stderr).toContain(said);
  expect(run.stderr.trim().split("\n")).toHaveLength(1);
});

test("an unavailable database is reported in one sentence, without its password", async () => {
  const adminWithoutDatabase = adminIn({ ...environment, DATABASE_URL: "postgres://pay:hidden@127.0.0.1:1/pay" });
  const { code, stderr } = await adminWithoutDatabase("accounts", "list");
  expect(code).toBe(1);
  expect(stderr).not.toContain("hidden");
  expect(stderr.trim().split("\n")).toHaveLength(1);
});

test("a command refuses a database that a later release has migrated too far", async () => {
  const url = await createDatabase();
  await execute(url, "insert into kysely_migration (name, timestamp) values ('0003_later', 'now')");
  const { code, stderr } = await adminIn({ ...environment, DATABASE_URL: url })("accounts", "list");
  expect(code).not.toBe(0);
  expect(stderr).toContain("the database has schema version 3, and this release works with 1 and 2");
});
