import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readCollected } from "../../../../payments/buyer-data/collected-data.ts";
import { listDataKeyUses, reencrypt } from "../../../../payments/maintenance/reencrypt.ts";
import { createOperator } from "../../../../payments/operators/operators.ts";
import { rotateSecret } from "../../../../payments/webhooks/endpoint-secrets.ts";
import {
  createDecrypt,
  createEncrypt,
  type EncryptionKey,
  newEncryptionKeys,
  parseEncryptionKey,
} from "../../../../runtime/encryption.ts";
import { adminIn } from "../../../support/admin.ts";
import { allEntries } from "../../../support/audited-changes.ts";
import { startChain } from "../../../support/evm-chain.ts";
import { execute } from "../../../support/execute-sql.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { testKeys } from "../../../support/test-deps.ts";
import {
  deliverAll,
  makeWebhookFixture,
  type ReceivedWebhook,
  verifyReceivedWebhook,
} from "../../../support/webhook-endpoint.ts";

// The first keys are made before there is a database.
const admin = adminIn({ DATABASE_URL: "postgres://127.0.0.1:1/none" });

async function readKey(file: string): Promise<EncryptionKey> {
  const key = parseEncryptionKey(await readFile(file, "utf8"));
  if (!key) throw new Error(`${file} holds no key`);
  return key;
}

test("an operator makes a key pair as two files, and the command prints no private key", async () => {
  const dir = await mkdtemp(join(tmpdir(), "keys "));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const file = join(dir, "buyer-data");
  const { code, stdout } = await admin("data-keys", "new", file, "--name", "2026-11");
  expect(code).toBe(0);
  const encrypted = await createEncrypt(await readKey(`${file}.pub`))("x", "row_1");
  expect(encrypted.keyId).toBe("2026-11");
  expect(await createDecrypt([await readKey(file)])(encrypted, "row_1")).toBe("x");
  const text = await readFile(file, "utf8");
  expect(stdout).not.toContain(text.trim().slice("2026-11:".length));
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await admin("data-keys", "new", file, "--name", "2026-12")).toMatchObject({
    code: 1,
    stderr: `${file} cannot be written (EEXIST)\n`,
  });
  expect(await readFile(file, "utf8")).toBe(text);
  expect(await admin("data-keys", "new", join(dir, "b"), "--name", "a:b")).toMatchObject({ code: 2 });
});

const parse = (text: string): EncryptionKey => {
  const key = parseEncryptionKey(text);
  if (!key) throw new Error("expected a key");
  return key;
};

test("after reencrypt the earlier private keys are not needed: webhooks are signed, data and TOTP secrets readable", async () => {
  const { fixture, secret, query, endpoint } = await makeWebhookFixture(await startChain());
  const { deps, db } = fixture;
  const next = unwrap(await rotateSecret(deps, query)).secret;
  const paymentId = await fixture.create();
  const at = deps.now();
  const collected = { id: "cdat_1", payment_id: paymentId, account: "eip155:1:0xab", requester: "r", attempt_id: null };
  const text = JSON.stringify([{ id: "fullName", value: "Ada" }]);
  const { keyId: key_id, ciphertext } = await deps.encryptBuyerData(text, `${paymentId} ${collected.account}`);
  const times = { created_at: at, delete_at: at, keep_until: at };
  await db
    .insertInto("collected_data")
    .values({ ...collected, key_id, ciphertext, ...times })
    .execute();
  unwrap(await createOperator(deps, { actor: testActor, name: "anna", role: "approver" }));
  expect(await listDataKeyUses(deps)).toEqual([
    { pair: "buyer-data", keyId: "test", column: "collected_data.ciphertext", values: 1 },
    { pair: "webhooks", keyId: "test", column: "webhook_endpoint.secret", values: 1 },
    { pair: "webhooks", keyId: "test", column: "webhook_endpoint.previous_secret", values: 1 },
    { pair: "totp", keyId: "test", column: "operator.totp_secret", values: 1 },
  ]);

  const made = await newEncryptionKeys("next");
  const env = {
    DATABASE_URL: fixture.databaseUrl,
    ...testKeys,
    BUYER_DATA_PUBLIC_KEY: made.publicKey,
    WEBHOOK_PUBLIC_KEY: made.publicKey,
    TOTP_PUBLIC_KEY: made.publicKey,
    OPERATOR: "anna",
  };
  const { WEBHOOK_PRIVATE_KEYS, ...without } = env;
  expect(await adminIn(without)("data-keys", "reencrypt", "webhooks")).toMatchObject({
    code: 2,
    stderr: "WEBHOOK_PRIVATE_KEYS is missing: the command decrypts with it\n",
  });
  expect(
    await adminIn({ ...env, WEBHOOK_PRIVATE_KEYS: made.privateKey })("data-keys", "reencrypt", "webhooks"),
  ).toEqual({
    code: 1,
    stdout: 'reencrypted  0\nunreadable   {"test":2}\n',
    stderr: "the private key is missing or does not fit: 2 of test\n",
  });
  for (const pair of ["buyer-data", "webhooks", "totp"])
    expect(await adminIn(env)("data-keys", "reencrypt", pair)).toEqual({
      code: 1,
      stdout: "",
      stderr: "the private key of next is missing or does not fit its public key\n",
    });
  const both = (key: string) => `${made.privateKey}\n${key}`;
  const complete = {
    ...env,
    BUYER_DATA_PRIVATE_KEYS: both(testKeys.BUYER_DATA_PRIVATE_KEYS),
    WEBHOOK_PRIVATE_KEYS: both(testKeys.WEBHOOK_PRIVATE_KEYS),
    TOTP_PRIVATE_KEYS: both(testKeys.TOTP_PRIVATE_KEYS),
  };
  for (const [pair, reencrypted] of [
    ["buyer-data", 1],
    ["webhooks", 2],
    ["totp", 1],
  ] as const) {
    const { code, stdout } = await adminIn(complete)("data-keys", "reencrypt", pair, "--json");
    expect([code, JSON.parse(stdout)]).toEqual([0, { reencrypted, unreadable: {} }]);
  }
  const status = await adminIn(env)("data-keys", "status", "--json");
  expect(new Set(JSON.parse(status.stdout).map(({ keyId }: { keyId: string }) => keyId))).toEqual(new Set(["next"]));
  const entries = (await allEntries(db)).filter(({ action }) => action === "data_key.reencrypted");
  expect(entries.map(({ subject, actor_id }) => [subject, actor_id]).sort()).toEqual([
    ["buyer-data", "anna"],
    ["totp", "anna"],
    ["webhooks", "anna"],
    ["webhooks", "anna"],
  ]);

  const decrypt = createDecrypt([parse(made.privateKey)]);
  await deliverAll({ deps: { ...deps, decryptWebhookSecret: decrypt } });
  const [arrival] = endpoint.arrivals as [ReceivedWebhook];
  verifyReceivedWebhook(secret, arrival);
  verifyReceivedWebhook(next, arrival);
  const [view] = await readCollected({ db, decryptBuyerData: decrypt }, paymentId);
  expect(view?.fields).toEqual(JSON.parse(text));
  const anna = await db.selectFrom("operator").selectAll().executeTakeFirstOrThrow();
  expect(await decrypt({ keyId: anna.totp_key_id, ciphertext: anna.totp_secret }, "anna")).toMatch(/^[A-Z2-7]{32}/);
});

test("reencrypt deletes a previous webhook secret that no longer signs, even one that no key decrypts", async () => {
  const { fixture, query } = await makeWebhookFixture(await startChain());
  unwrap(await rotateSecret(fixture.deps, query));
  await fixture.db
    .updateTable("webhook_endpoint")
    .set({ previous_key_id: "lost", previous_until: new Date(Date.now() - 1_000) })
    .execute();
  const admin = adminIn({ DATABASE_URL: fixture.databaseUrl, ...testKeys });
  expect(await admin("data-keys", "reencrypt", "webhooks")).toMatchObject({ code: 0 });
  expect((await listDataKeyUses(fixture.deps)).map(({ keyId }) => keyId)).toEqual(["test"]);
});

test("reencrypt refuses a second pair with the name of the first, whose secrets it would leave to the old private key", async () => {
  const { fixture } = await makeWebhookFixture(await startChain());
  const second = await newEncryptionKeys("test");
  const env = { DATABASE_URL: fixture.databaseUrl, ...testKeys, WEBHOOK_PUBLIC_KEY: second.publicKey };
  const run = (keys: string) => adminIn({ ...env, WEBHOOK_PRIVATE_KEYS: keys })("data-keys", "reencrypt", "webhooks");
  expect(await run(second.privateKey)).toEqual({
    code: 1,
    stdout: "",
    stderr: "another key pair named test encrypted 1 of the sampled values: make a pair with a new name\n",
  });
  expect(await run(`${second.privateKey}\n${testKeys.WEBHOOK_PRIVATE_KEYS}`)).toEqual({
    code: 2,
    stdout: "",
    stderr: "the environment is invalid:\n  WEBHOOK_PRIVATE_KEYS: two keys have the name test\n",
  });
});

test("a secret that is rotated while reencrypt runs stays as the rotation wrote it", async () => {
  const { fixture, query } = await makeWebhookFixture(await startChain());
  const { deps, db } = fixture;
  const made = await newEncryptionKeys("next");
  const keys = [parse(made.privateKey), parse(testKeys.WEBHOOK_PRIVATE_KEYS)];
  const [encrypt, decrypt] = [createEncrypt(parse(made.publicKey)), createDecrypt(keys)];
  let rotated: string | undefined;
  const args = {
    actor: testActor,
    pair: "webhooks",
    keyId: "next",
    decrypt,
    encrypt: async (text: string, context: string) => {
      if (context === query.endpointId) rotated ??= unwrap(await rotateSecret(deps, { ...query, now: true })).secret;
      return encrypt(text, context);
    },
  } as const;
  expect(await reencrypt(deps, args)).toEqual({ ok: true, value: { reencrypted: 0, unreadable: {} } });
  const { key_id: keyId, secret } = await db.selectFrom("webhook_endpoint").selectAll().executeTakeFirstOrThrow();
  expect(await decrypt({ keyId, ciphertext: secret }, query.endpointId)).toBe(rotated);
  expect(unwrap(await reencrypt(deps, args)).reencrypted).toBe(1);
});

test("reencrypt reads few of the values that the newest pair has encrypted, and finds a foreign one at either end", async () => {
  const { fixture } = await makeWebhookFixture(await startChain());
  const { deps } = fixture;
  const payment = await fixture.create();
  await execute(
    fixture.databaseUrl,
    `insert into collected_data (id, payment_id, account, requester, key_id, ciphertext, created_at, delete_at, keep_until)
     select 'cdat_' || lpad(n::text, 4, '0'), '${payment}', n, 'r', 'test', '', now(), now(), now() from generate_series(1, 600) n`,
  );
  const foreign = new Set(["0001", "0600"].map((one) => `${payment} ${Number(one)}`));
  let decrypted = 0;
  const args = {
    ...({ actor: testActor, pair: "buyer-data", keyId: "test" } as const),
    encrypt: async (text: string) => ({ keyId: "test", ciphertext: Buffer.from(text) }),
    decrypt: async ({ ciphertext }: { ciphertext: Uint8Array }, context: string) => {
      decrypted += 1;
      if (foreign.has(context)) throw new Error("another key");
      return Buffer.from(ciphertext).toString();
    },
  };
  expect(await reencrypt(deps, args)).toMatchObject({ ok: false, message: expect.stringContaining("encrypted 2") });
  foreign.clear();
  expect(await reencrypt(deps, args)).toMatchObject({ ok: true });
  expect(decrypted).toBeLessThanOrEqual(2 * 401);
});
