import { expect, test } from "vitest";
import { openDb } from "../../../../db/open.ts";
import { createAccount } from "../../../../payments/merchants/accounts.ts";
import { findCallerByKey } from "../../../../payments/merchants/callers.ts";
import { createMerchant } from "../../../../payments/merchants/merchants.ts";
import { adminIn } from "../../../support/admin.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { testActor } from "../../../support/test-actor.ts";
import { createDatabase } from "../../../support/test-database.ts";

const url = await createDatabase();
const db = openDb(url, { max: 2 });
addCleanup(() => db.destroy());
const deps = { db, now: () => new Date() };
const { id: accountId } = await createAccount(deps, { actor: testActor, name: "Shop" });
const owned = { actor: testActor, accountId, mode: "live" } as const;
const merchant = await createMerchant(deps, { ...owned, name: "Shop", email: "shop@example.test" });
const owner = ["--account", accountId, "--mode", "live"];
const admin = adminIn({ DATABASE_URL: url, OPERATOR: "night watch" });

type Issued = { keyId: string; apiKey: string };
async function json<T = Issued>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await admin(...args, "--json");
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as T;
}
const works = async (key: string) => (await findCallerByKey(deps, { key, address: "192.0.2.7" })).ok;

test("a key works until an operator revokes it, and is printed once", async () => {
  const { keyId, apiKey } = await json("api-keys", "new", ...owner, "--scopes", "gateway,payments:read");
  expect(await findCallerByKey(deps, { key: apiKey, address: "192.0.2.7" })).toMatchObject({
    ok: true,
    value: { accountId, mode: "live", scopes: ["gateway", "payments:read"] },
  });
  const listed = await admin("api-keys", "list", "--account", accountId);
  expect(listed.stdout).toContain(keyId);
  expect(listed.stdout).not.toContain(apiKey.slice(4, 20));
  expect(await admin("api-keys", "revoke", keyId)).toMatchObject({ code: 0 });
  expect(await works(apiKey)).toBe(false);
  expect(await json("api-keys", "revoke", keyId)).toEqual({ id: keyId, revoked: [] });
  expect(await admin("api-keys", "revoke", "key_0")).toMatchObject({ code: 1, stderr: "there is no key key_0\n" });
});

test("an operator limits a key to merchants, addresses and a time, and sees the limits", async () => {
  const expires = new Date(Date.now() + 60_000).toISOString();
  const limits = ["--merchants", merchant.id, "--cidrs", "192.0.2.0/24,2001:db8::/32", "--expires", expires];
  const { keyId, apiKey } = await json("api-keys", "new", ...owner, "--scopes", "refunds", ...limits);
  expect(await json<object>("api-keys", "show", keyId)).toMatchObject({
    id: keyId,
    scopes: ["refunds"],
    merchantIds: [merchant.id],
    allowedCidrs: ["192.0.2.0/24", "2001:db8::/32"],
    expiresAt: expires,
    createdBy: null,
  });
  expect(await works(apiKey)).toBe(true);
  expect(await findCallerByKey(deps, { key: apiKey, address: "198.51.100.7" })).toMatchObject({ code: "forbidden" });
});

test("an operator rotates a key with an overlap, until a time, or ends the former secret at once", async () => {
  const { keyId, apiKey: first } = await json("api-keys", "new", ...owner, "--scopes", "refunds");
  const until = new Date(Date.now() + 60_000).toISOString();
  const { apiKey: second, ...rotated } = await json("api-keys", "rotate", keyId, "--until", until);
  expect(rotated).toMatchObject({ formerWorksUntil: until });
  expect([await works(first), await works(second)]).toEqual([true, true]);
  const { apiKey: last } = await json("api-keys", "rotate", keyId, "--now");
  expect([await works(first), await works(second), await works(last)]).toEqual([false, false, true]);
  const { apiKey: afterLast } = await json("api-keys", "rotate", keyId);
  expect([await works(last), await works(afterLast)]).toEqual([true, true]);
});

test("a second operator's rotation is refused while the secret that is deployed works", async () => {
  const { keyId, apiKey: deployed } = await json("api-keys", "new", ...owner, "--scopes", "refunds");
  const { apiKey: newest } = await json("api-keys", "rotate", keyId);
  const until = new Date(Date.now() + 3_600_000).toISOString();
  for (const options of [[], ["--until", until]]) {
    const second = await admin("api-keys", "rotate", keyId, ...options);
    expect(second).toMatchObject({ code: 1, stdout: "" });
    expect(second.stderr).toMatch(/the secret before the last rotation works until .+; use --now/);
  }
  expect([await works(deployed), await works(newest)]).toEqual([true, true]);
});

test("a key that is typed in place of its id is refused and appears in no output", async () => {
  const { apiKey = "" } = await json("api-keys", "new", ...owner, "--scopes", "refunds");
  for (const command of ["show", "rotate", "revoke"]) {
    const { code, stdout, stderr } = await admin("api-keys", command, apiKey);
    expect([code, stdout, stderr]).toEqual([1, "", "expected the id of a key (key_…), not the key itself\n"]);
  }
  expect(await works(apiKey)).toBe(true);
});

test("every command that changes a key writes one audit entry with the operator's name", async () => {
  const { keyId } = await json("api-keys", "new", ...owner, "--scopes", "refunds");
  await json("api-keys", "rotate", keyId);
  await json("api-keys", "revoke", keyId, "--with-created");
  const entries = await db
    .selectFrom("audit_entry")
    .selectAll()
    .where("subject", "=", keyId)
    .orderBy("sequence")
    .execute();
  expect(entries.map(({ action }) => action)).toEqual(["api_key.created", "api_key.rotated", "api_key.revoked"]);
  for (const entry of entries) expect(entry).toMatchObject({ actor_kind: "operator", actor_id: "night watch" });
});

test.each([
  [["api-keys", "new", "--mode", "live"], "--account"],
  [["api-keys", "new", ...owner], "--scopes"],
  [["api-keys", "new", ...owner, "--scopes", "all"], "there is no scope"],
  [["api-keys", "new", ...owner, "--scopes", "merchant"], "there is no scope"],
  [["api-keys", "new", ...owner, "--scopes", "refunds", "--cidrs", "10.0.0.1/8"], "allowedCidrs.0"],
  [["api-keys", "new", ...owner, "--scopes", "refunds", "--expires", "2020-01-01"], "expiresAt"],
  [["api-keys", "rotate", "key_0", "--now", "--until", "2100-01-01"], "--now"],
])("a wrong call %j exits with 2 and creates no key", async (args, said) => {
  const before = await db.selectFrom("api_key").select("id").execute();
  const run = await admin(...args);
  expect(run).toMatchObject({ code: 2, stdout: "" });
  expect(run.stderr).toContain(said);
  expect(await db.selectFrom("api_key").select("id").execute()).toHaveLength(before.length);
});
