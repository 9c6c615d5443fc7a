import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import { insertKeyMaker } from "../../../../db/queries/api-keys.ts";
import { createMerchant } from "../../../../payments/merchants/merchants.ts";
import { type Scope, scopes } from "../../../../payments/merchants/scopes.ts";
import { testActor } from "../../../support/test-actor.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { makeKey, makeMerchant, makePayment, startApi } from "../start-api.ts";

const api = await startApi();
const shop = await makeMerchant(api);
const admin = { "api-key": shop.key };
const paymentPath = `/v1/payments/${await makePayment(api, shop)}`;
type ApiKey = { id: string; hint: string; scopes: Scope[]; previousUntil: string | null };
type Issued = { apiKey: ApiKey; key: string };

const works = async (key: string) => (await api.get(paymentPath, { ...shop.headers, "api-key": key })).status === 200;
async function create(body: object, headers = admin): Promise<Issued> {
  const answer = await api.post("/v1/api-keys", headers, body);
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.body as Issued;
}
const rotate = async (id: string, body: object = {}) =>
  (await api.post(`/v1/api-keys/${id}/rotate`, admin, body)).body as Issued;
const auditOf = (subject: string) =>
  api.db
    .selectFrom("audit_entry")
    .selectAll()
    .where("subject", "=", subject)
    .orderBy("day")
    .orderBy("sequence")
    .execute();
const later = (ms: number) => new Date(Date.now() + ms).toISOString();

describe("creating a key", () => {
  test("returns its text once, and stores and shows only its hash and its last characters", async () => {
    const { apiKey, key } = await create({ scopes: ["payments:read", "payments:read"] });
    expect(key).toMatch(/^svc_test_[0-9a-f]{64}$/);
    expect(apiKey).toMatchObject({
      hint: key.slice(-4),
      scopes: ["payments:read"],
      merchantIds: null,
      allowedCidrs: null,
      expiresAt: null,
      revokedAt: null,
    });
    expect(await works(key)).toBe(true);
    const read = await api.get(`/v1/api-keys/${apiKey.id}`, admin);
    expect(read.body).toEqual({ apiKey });
    const rows = await api.db.selectFrom("api_key").selectAll().execute();
    const audited = await api.db.selectFrom("audit_entry").selectAll().execute();
    expect(JSON.stringify([rows, audited])).not.toContain(key.slice(9));
  });

  test("requires scopes by name, and refuses invalid limits", async () => {
    const invalid = [
      [{}, "scopes"],
      [{ scopes: [] }, "scopes"],
      [{ scopes: ["all"] }, "scopes"],
      [{ scopes: ["merchant"] }, "scopes"],
      [{ scopes: ["refunds"], merchantIds: [] }, "merchantIds"],
      [{ scopes: ["refunds"], allowedCidrs: ["10.0.0.1/8"] }, "allowedCidrs.0"],
      [{ scopes: ["refunds"], allowedCidrs: ["192.0.2.1", "x"] }, "allowedCidrs.1"],
      [{ scopes: ["refunds"], expiresAt: later(-1) }, "expiresAt"],
    ] as const;
    for (const [body, member] of invalid) {
      const answer = await api.post("/v1/api-keys", admin, body);
      expect(answer, member).toMatchObject({ status: 400, body: { code: "params_validation" } });
      expect(answer.body["message"]).toContain(member);
    }
  });

  test("refuses a merchant that is deleted, of the other mode or of another account", async () => {
    const live = {
      actor: testActor,
      accountId: shop.accountId,
      mode: "live" as const,
      name: "Live",
      email: "live@example.test",
    };
    const gone = await createMerchant(api.deps, { ...live, mode: "test" });
    await api.delete(`/v1/merchants/${gone.id}`, admin);
    const others = [gone.id, (await createMerchant(api.deps, live)).id, (await makeMerchant(api)).merchantId];
    for (const id of others) {
      const merchantIds = [shop.merchantId, shop.merchantId, id];
      const { status, body } = await api.post("/v1/api-keys", admin, { scopes: ["refunds"], merchantIds });
      expect(status).toBe(404);
      // The place and not the value, which may be a secret at the wrong place.
      expect(body).toMatchObject({ code: "merchant_not_found", message: "merchantIds.2: no such merchant" });
    }
  });

  test("stores canonical ranges", async () => {
    const limits = { scopes: ["refunds"], allowedCidrs: ["::ffff:192.0.2.1", "192.0.2.1", "2001:DB8::/32"] };
    const { apiKey } = await create(limits);
    expect(apiKey).toMatchObject({ allowedCidrs: ["192.0.2.1/32", "2001:db8::/32"] });
  });
});

describe("a key manages only keys that can do no more than itself", () => {
  test("a key without the scope keys manages none", async () => {
    const { key } = await create({ scopes: scopes.filter((scope) => scope !== "keys") });
    expect(await api.get("/v1/api-keys", { "api-key": key })).toMatchObject({
      status: 403,
      body: { code: "forbidden", message: "the API key lacks the scope keys" },
    });
  });

  test("a new key has the limits of its creator, or narrower ones", async () => {
    const limits = {
      scopes: ["keys", "payments:read"],
      merchantIds: [shop.merchantId],
      allowedCidrs: ["127.0.0.0/8"],
      expiresAt: later(60_000),
    };
    const { apiKey: own, key } = await create(limits);
    const holder = { "api-key": key };
    expect((await create({ scopes: ["payments:read"] }, holder)).apiKey).toMatchObject({
      ...limits,
      scopes: ["payments:read"],
      createdBy: own.id,
    });
    const narrower = { allowedCidrs: ["127.0.0.1/32"], expiresAt: later(30_000) };
    expect((await create({ scopes: ["keys"], ...narrower }, holder)).apiKey).toMatchObject(narrower);
    for (const excess of [
      { scopes: ["refunds"] },
      { merchantIds: [shop.merchantId, `mrch_${"0".repeat(32)}`] },
      { allowedCidrs: ["0.0.0.0/0"] },
      { expiresAt: later(120_000) },
    ]) {
      const answer = await api.post("/v1/api-keys", holder, { scopes: ["payments:read"], ...excess });
      expect(answer).toMatchObject({ status: 403, body: { code: "forbidden" } });
      expect(answer.body["message"]).toContain(Object.keys(excess)[0]);
    }
  });

  test("a key that could do more is not listed, read, rotated or revoked", async () => {
    const limits = {
      scopes: ["keys", "payments:read"] as const,
      onlyMerchants: [shop.merchantId],
      allowedCidrs: ["127.0.0.0/8"],
      expiresAt: new Date(Date.now() + 60_000),
    };
    const owner = { accountId: shop.accountId, mode: "test" } as const;
    const { key } = await makeKey(api, { ...owner, ...limits });
    const within = await makeKey(api, { ...owner, ...limits, scopes: ["payments:read"] });
    const beyond = [
      await makeKey(api, { ...owner, ...limits, scopes: ["refunds"] }),
      await makeKey(api, { ...owner, ...limits, onlyMerchants: null }),
      await makeKey(api, { ...owner, ...limits, allowedCidrs: null }),
      await makeKey(api, { ...owner, ...limits, allowedCidrs: ["127.0.0.1/32", "10.0.0.0/8"] }),
      await makeKey(api, { ...owner, ...limits, expiresAt: null }),
      await makeKey(api, { ...owner, ...limits, expiresAt: new Date(limits.expiresAt.getTime() + 1) }),
      await makeKey(api, { ...owner, ...limits, mode: "live", onlyMerchants: null }),
      await makeKey(api, { ...owner, ...limits, accountId: (await makeMerchant(api)).accountId, onlyMerchants: null }),
    ];
    const holder = { "api-key": key };
    const listed = (await api.get("/v1/api-keys?limit=100", holder)).body["data"] as ApiKey[];
    expect(listed.map(({ id }) => id)).toContain(within.id);
    expect(listed.map(({ id }) => id).filter((id) => beyond.some((one) => one.id === id))).toEqual([]);
    const absent = { status: 404, body: { code: "api_key_not_found" } };
    for (const { id } of [...beyond, { id: `key_${"0".repeat(32)}` }]) {
      expect(await api.get(`/v1/api-keys/${id}`, holder)).toMatchObject(absent);
      expect(await api.post(`/v1/api-keys/${id}/rotate`, holder, {})).toMatchObject(absent);
      expect(await api.post(`/v1/api-keys/${id}/revoke`, holder, {})).toMatchObject(absent);
    }
    expect(await api.get(`/v1/api-keys/${within.id}`, holder)).toMatchObject({ status: 200 });
  });

  test("keys are listed page by page, newest first", async () => {
    const { accountId } = await makeMerchant(api);
    const { key } = await makeKey(api, { accountId, mode: "test", scopes });
    const made = [];
    for (let count = 0; count < 3; count += 1)
      made.push((await create({ scopes: ["refunds"] }, { "api-key": key })).apiKey.id);
    const seen: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const page = await api.get(`/v1/api-keys?limit=2${cursor && `&cursor=${cursor}`}`, { "api-key": key });
      seen.push(...(page.body["data"] as ApiKey[]).map(({ id }) => id));
      cursor = page.body["nextCursor"] as string | null;
    }
    expect(seen.slice(0, 3)).toEqual(made.toReversed());
    expect(new Set(seen).size).toBe(5);
  });
});

describe("rotating a key", () => {
  test("makes a new secret, and the former one works until the given time", async () => {
    const { apiKey, key: first } = await create({ scopes: ["payments:read"] });
    const { apiKey: rotated, key: second } = await rotate(apiKey.id, { previousUntil: later(60_000) });
    expect(rotated).toMatchObject({ id: apiKey.id, hint: second.slice(-4) });
    expect([await works(first), await works(second)]).toEqual([true, true]);
    const past = new Date(Date.now() - 1);
    await api.db.updateTable("api_key").set({ previous_until: past }).where("id", "=", apiKey.id).execute();
    api.credentials.forget();
    expect(await api.get(paymentPath, { ...shop.headers, "api-key": first })).toMatchObject({
      status: 401,
      body: { code: "invalid_api_key", message: expect.stringContaining("replaced") },
    });
    expect(await works(second)).toBe(true);
  });

  test("overlaps for a day by default, for 30 days at most, and not at all when the time has come", async () => {
    const { apiKey, key } = await create({ scopes: ["payments:read"] });
    const { apiKey: rotated } = await rotate(apiKey.id);
    const hours = (Date.parse(rotated.previousUntil ?? "") - Date.now()) / 3_600_000;
    expect(hours).toBeGreaterThan(23.9);
    expect(hours).toBeLessThan(24.1);
    expect(await works(key)).toBe(true);
    const tooLong = { previousUntil: later(31 * 24 * 3_600_000) };
    expect(await api.post(`/v1/api-keys/${apiKey.id}/rotate`, admin, tooLong)).toMatchObject({ status: 400 });
    const { key: last } = await rotate(apiKey.id, { previousUntil: later(-1) });
    expect(await works(last)).toBe(true);
    expect(await works(key)).toBe(false);
  });

  test("twice leaves the newest secret and the one before it, and ends the oldest at once", async () => {
    const { apiKey, key: first } = await create({ scopes: ["payments:read"] });
    const { key: second } = await rotate(apiKey.id);
    const { key: third } = await rotate(apiKey.id);
    expect([await works(first), await works(second), await works(third)]).toEqual([false, true, true]);
  });

  test("by several callers at once leaves one current secret and one former", async () => {
    const { apiKey, key } = await create({ scopes: ["payments:read"] });
    const issued = await Promise.all(Array.from({ length: 5 }, () => rotate(apiKey.id)));
    const alive = await Promise.all([key, ...issued.map((one) => one.key)].map(works));
    expect(alive.filter(Boolean)).toHaveLength(2);
  });

  test("is refused for a revoked key", async () => {
    const { apiKey } = await create({ scopes: ["payments:read"] });
    await api.post(`/v1/api-keys/${apiKey.id}/revoke`, admin, {});
    expect(await api.post(`/v1/api-keys/${apiKey.id}/rotate`, admin, {})).toMatchObject({
      status: 400,
      body: { code: "invalid_state", message: "the key is revoked" },
    });
  });
});

describe("revoking a key", () => {
  test("ends both of its secrets at once, and is repeatable", async () => {
    const { apiKey, key: first } = await create({ scopes: ["payments:read"] });
    const { key: second } = await rotate(apiKey.id);
    const revoked = await api.post(`/v1/api-keys/${apiKey.id}/revoke`, admin, undefined);
    expect(revoked).toMatchObject({ status: 200, body: { revoked: [apiKey.id] } });
    for (const key of [first, second])
      expect(await api.get(paymentPath, { ...shop.headers, "api-key": key })).toMatchObject({
        status: 401,
        body: { code: "invalid_api_key", message: expect.stringContaining("revoked") },
      });
    const repeated = await api.post(`/v1/api-keys/${apiKey.id}/revoke`, admin, {});
    expect(repeated).toMatchObject({ status: 200, body: { ...revoked.body, revoked: [] } });
  });

  test("leaves the keys that it created, unless the caller asks for them too", async () => {
    const parent = await create({ scopes: ["keys", "payments:read"] });
    const child = await create({ scopes: ["keys", "payments:read"] }, { "api-key": parent.key });
    const grandchild = await create({ scopes: ["payments:read"] }, { "api-key": child.key });
    await api.post(`/v1/api-keys/${parent.apiKey.id}/revoke`, admin, {});
    expect([await works(parent.key), await works(child.key), await works(grandchild.key)]).toEqual([false, true, true]);
    const all = await api.post(`/v1/api-keys/${parent.apiKey.id}/revoke`, admin, { withCreated: true });
    expect(all.body["revoked"]).toEqual([child.apiKey.id, grandchild.apiKey.id].toSorted());
    expect([await works(child.key), await works(grandchild.key)]).toEqual([false, false]);
  });

  const NOW = { previousUntil: later(0) };
  const rotateAs = async (key: string, id: string, body: object) =>
    (await api.post(`/v1/api-keys/${id}/rotate`, { "api-key": key }, body)).body as Issued;
  const revokeStolen = async ({ apiKey }: Issued) =>
    (await api.post(`/v1/api-keys/${apiKey.id}/revoke`, admin, { withCreated: true })).body["revoked"];

  test("ends the secrets that it got for other keys, with the keys that it created", async () => {
    const stolen = await create({ scopes: ["keys", "payments:read"] });
    const sibling = await create({ scopes: ["keys", "payments:read"] });
    const rotatedLater = await create({ scopes: ["payments:read"] });
    const overlap = { previousUntil: later(29 * 24 * 3_600_000) };
    const taken = await rotateAs(stolen.key, sibling.apiKey.id, overlap);
    const through = await rotateAs(taken.key, rotatedLater.apiKey.id, overlap);
    const last = await rotateAs(shop.key, rotatedLater.apiKey.id, overlap);
    const left = await create({ scopes: ["payments:read"] });
    expect(await Promise.all([taken.key, through.key, last.key].map(works))).toEqual([true, true, true]);
    const ended = [stolen.apiKey.id, sibling.apiKey.id, rotatedLater.apiKey.id];
    expect(await revokeStolen(stolen)).toEqual(ended.toSorted());
    expect(await Promise.all([taken.key, through.key, last.key, left.key].map(works))).toEqual([
      false,
      false,
      false,
      true,
    ]);
  });

  test("ends a key that it rotated, although that key has rotated itself since", async () => {
    const stolen = await create({ scopes: ["keys", "payments:read"] });
    const sibling = await create({ scopes: ["keys", "payments:read"] });
    const taken = await rotateAs(stolen.key, sibling.apiKey.id, {});
    const kept = await rotateAs(taken.key, sibling.apiKey.id, NOW);
    expect(await works(kept.key)).toBe(true);
    expect(await revokeStolen(stolen)).toEqual([stolen.apiKey.id, sibling.apiKey.id].toSorted());
    expect(await works(kept.key)).toBe(false);
  });

  test("ends a key that was created with a secret that it got, although the merchant has ended that secret", async () => {
    const stolen = await create({ scopes: ["keys", "payments:read"] });
    const sibling = await create({ scopes: ["keys", "payments:read"] });
    const taken = await rotateAs(stolen.key, sibling.apiKey.id, {});
    const made = await create({ scopes: ["payments:read"] }, { "api-key": taken.key });
    await rotate(sibling.apiKey.id, NOW);
    expect([await works(taken.key), await works(made.key)]).toEqual([false, true]);
    expect(await revokeStolen(stolen)).toEqual([stolen, sibling, made].map(({ apiKey }) => apiKey.id).toSorted());
    expect(await works(made.key)).toBe(false);
  });
});

describe("a key that is being revoked", () => {
  const waitForLocks = async (count: number) => {
    const isWaiting = async () => {
      const { rows } = await sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(api.db);
      return rows.length >= count;
    };
    await waitFor(isWaiting, { within: 10_000, what: `${count} calls wait` });
  };
  /** Starts a call by a key while a transaction that revokes the key is open, and returns the call's answer. */
  async function callDuringRevocation(
    issued: Issued,
    call: (headers: Record<string, string>) => ReturnType<typeof api.post>,
  ) {
    return api.db.transaction().execute(async (db) => {
      await db.updateTable("api_key").set({ revoked_at: new Date() }).where("id", "=", issued.apiKey.id).execute();
      const answer = call({ "api-key": issued.key });
      await waitForLocks(1);
      return { answer };
    });
  }
  const refused = { status: 401, body: { code: "invalid_api_key" } };

  test("creates no other key", async () => {
    const issued = await create({ scopes: ["keys"] });
    const { answer } = await callDuringRevocation(issued, (headers) =>
      api.post("/v1/api-keys", headers, { scopes: ["keys"] }),
    );
    expect(await answer).toMatchObject(refused);
    const rows = await api.db.selectFrom("api_key").select("id").where("created_by", "=", issued.apiKey.id).execute();
    expect(rows).toEqual([]);
  });

  test("gets no new secret of another key, or of its own", async () => {
    const issued = await create({ scopes: ["keys"] });
    const other = await create({ scopes: ["keys"] });
    const { answer } = await callDuringRevocation(issued, (headers) =>
      api.post(`/v1/api-keys/${other.apiKey.id}/rotate`, headers, {}),
    );
    expect(await answer).toMatchObject(refused);
    const own = await create({ scopes: ["keys"] });
    const rotation = await callDuringRevocation(own, (headers) =>
      api.post(`/v1/api-keys/${own.apiKey.id}/rotate`, headers, {}),
    );
    expect(await rotation.answer).toMatchObject(refused);
  });

  test("is revoked with its family while it rotates another key of the family", async () => {
    const made = await Promise.all([1, 2].map(() => create({ scopes: ["keys", "payments:read"] })));
    // Rotations lock keys in the order of their ids.
    const [other, stolen] = made.toSorted((a, b) => (a.apiKey.id < b.apiKey.id ? -1 : 1));
    if (!other || !stolen) throw new Error("no keys");
    const rotate = () => api.post(`/v1/api-keys/${other.apiKey.id}/rotate`, { "api-key": stolen.key }, {});
    expect(await rotate()).toMatchObject({ status: 200 });
    const { revoking, rotating } = await api.db.transaction().execute(async (db) => {
      await sql`lock table api_key_maker in access exclusive mode`.execute(db);
      const path = `/v1/api-keys/${stolen.apiKey.id}/revoke`;
      const revoking = api.post(path, admin, { withCreated: true });
      await waitForLocks(1);
      const rotating = rotate();
      await waitForLocks(2);
      return { revoking, rotating };
    });
    expect(await revoking).toMatchObject({
      status: 200,
      body: { revoked: [other.apiKey.id, stolen.apiKey.id] },
    });
    const rotated = await rotating;
    expect(rotated.status).toBe(200);
    expect(await works((rotated.body as Issued).key)).toBe(false);
  });

  test("creates no key by calls that wait behind its revocation, although the revocation finds another key of the family", async () => {
    const stolen = await create({ scopes: ["keys", "payments:read"] });
    const other = await create({ scopes: ["payments:read"] });
    const { revoking, creating } = await api.db.transaction().execute(async (db) => {
      // As a rotation by the stolen key that has not committed yet.
      await db.selectFrom("api_key").select("id").where("id", "=", stolen.apiKey.id).forNoKeyUpdate().execute();
      await insertKeyMaker(db, { maker_id: stolen.apiKey.id, key_id: other.apiKey.id });
      const revoking = api.post(`/v1/api-keys/${stolen.apiKey.id}/revoke`, admin, { withCreated: true });
      await waitForLocks(1);
      const headers = { "api-key": stolen.key };
      const creating = [1, 2].map(() => api.post("/v1/api-keys", headers, { scopes: ["payments:read"] }));
      await waitForLocks(3);
      return { revoking, creating: Promise.all(creating) };
    });
    expect(await creating).toMatchObject([refused, refused]);
    const ended = [stolen.apiKey.id, other.apiKey.id].toSorted();
    expect(await revoking).toMatchObject({ status: 200, body: { revoked: ended } });
    expect([await works(stolen.key), await works(other.key)]).toEqual([false, false]);
  });
});

test("every change of a key writes one audit entry with the acting key and its address", async () => {
  const { apiKey } = await create({ scopes: ["settlements:approve"] });
  await rotate(apiKey.id);
  await api.post(`/v1/api-keys/${apiKey.id}/revoke`, admin, {});
  await api.post(`/v1/api-keys/${apiKey.id}/revoke`, admin, {});
  const entries = await auditOf(apiKey.id);
  expect(entries.map(({ action }) => action)).toEqual(["api_key.created", "api_key.rotated", "api_key.revoked"]);
  const [own] = await api.db
    .selectFrom("api_key")
    .select("id")
    .where("account_id", "=", shop.accountId)
    .orderBy("created_at")
    .execute();
  for (const entry of entries)
    expect(entry).toMatchObject({ actor_kind: "key", actor_id: own?.id, actor_address: "127.0.0.1" });
  expect(entries[0]).toMatchObject({ before: null, after: { scopes: ["settlements:approve"], hint: apiKey.hint } });
  expect(entries[2]).toMatchObject({ before: { revokedAt: null }, after: { revokedAt: expect.any(String) } });
});
