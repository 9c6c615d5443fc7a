import { Redis } from "ioredis";
import { privateKeyToAccount } from "viem/accounts";
import { expect, inject, onTestFinished, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { type CollectedField, readCollected } from "../../../../payments/buyer-data/collected-data.ts";
import { addPolicy, removePolicy } from "../../../../payments/buyer-data/collection-policies.ts";
import { createVerify } from "../../../../payments/lifecycle/verify-batches.ts";
import { cleanUp } from "../../../../payments/maintenance/clean-up.ts";
import { addDestinations } from "../../../../payments/merchants/destinations.ts";
import { createDecrypt } from "../../../../runtime/encryption.ts";
import { createVerifier } from "../../../../transfers/verifier.ts";
import { testActor } from "../../../support/test-actor.ts";
import { waitFor } from "../../../support/wait-for.ts";
import {
  asset,
  destination,
  makeMerchant,
  makePayment,
  publicUrl,
  secondAsset,
  startApi,
} from "../../api/start-api.ts";

const api = await startApi();
type Option = {
  id: string;
  amount: { unit: string };
  actions: [{ data: { params: [string, string] } }];
  collectData: { url: string; schema: object; fields: { id: string }[] } | null;
};
const zoe: CollectedField[] = [
  { id: "fullName", value: "Zoë Ångström-Quux" },
  { id: "dob", value: "1990-02-28" },
  { id: "tosConfirmed", value: "true" },
  { id: "pobCountry", value: "SE" },
  { id: "pobAddress", value: "Uppsala 17" },
];

/** A merchant paid in two assets, with policies, and a buyer. */
async function setUp(...policies: { asset?: string; unit?: string; minimum?: bigint }[]) {
  const merchant = await makeMerchant(api);
  const { accountId, merchantId, wallet } = merchant;
  await addDestinations(api.deps, {
    actor: testActor,
    accountId,
    mode: "test",
    merchantId,
    settlements: [{ asset: secondAsset, destination }],
  });
  for (const { asset = null, unit = null, minimum = null } of policies)
    await addPolicy(api.deps, { actor: testActor, merchantId, asset, unit, minimum });
  const buyer = privateKeyToAccount(newKey().privateKey);
  const options = async (id: string) => {
    const { body } = await api.post(`/v1/gateway/payment/${id}/options`, wallet, {
      accounts: [`eip155:31337:${buyer.address}`],
    });
    const list = body["options"] as Option[];
    const of = (wanted: string) => list.find(({ amount }) => amount.unit === `caip19/${wanted}`) as Option;
    return { whole: body["collectData"] as Option["collectData"], first: of(asset), second: of(secondAsset) };
  };
  const sign = async (option: Option) => {
    const { types, ...rest } = JSON.parse(option.actions[0].data.params[1]);
    const { EIP712Domain: _, ...own } = types;
    return [{ type: "walletRpc", data: [await buyer.signTypedData({ ...rest, types: own })] }];
  };
  const confirm = async (id: string, option: Option, fields?: unknown) =>
    api.post(`/v1/gateway/payment/${id}/confirm?maxPollMs=1`, wallet, {
      optionId: option.id,
      results: await sign(option),
      ...(fields === undefined ? {} : { collectedData: { fields } }),
    });
  return { ...merchant, buyer, options, confirm };
}

/** Posts data as the page does, to the URL that an option gave the wallet. */
const postTo = (option: Option, url = option.collectData?.url ?? "") => {
  const [, , paymentId, , by] = new URL(url).pathname.split("/");
  return (fields: unknown) => api.post(`/checkout/${paymentId}/collect/${by}`, {}, { optionId: option.id, fields });
};
/** Verifies every waiting confirm of a payment, as a worker does. */
async function verifyAll(paymentId: string): Promise<void> {
  const forJobs = { isTransient: () => false, withoutRequestContext: <T>(work: () => T) => work() };
  const verify = createVerify({ ...api.deps, ...forJobs, verifier: createVerifier(api.deps) });
  const rows = await api.db
    .selectFrom("attempt")
    .select("id")
    .where("payment_id", "=", paymentId)
    .where("state", "=", "waiting")
    .execute();
  for (const { id } of rows) await verify(id);
}

test("an option asks for data where a policy requires it: on both, one or none of the options", async () => {
  const none = await setUp();
  expect(await none.options(await makePayment(api, none))).toMatchObject({
    whole: null,
    first: { collectData: null },
    second: { collectData: null },
  });
  const one = await setUp({ asset });
  const id = await makePayment(api, one);
  const { whole, first, second } = await one.options(id);
  expect(second.collectData).toBeNull();
  expect(first.collectData).toMatchObject({
    url: expect.stringMatching(new RegExp(`^${publicUrl}/collect/${id}/${first.id}/[A-Za-z0-9_-]{22}$`)),
    schema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      additionalProperties: false,
      required: ["fullName", "dob", "tosConfirmed"],
      anyOf: [{ required: ["pobCountry", "pobAddress"] }, { required: ["porCountry", "porAddress"] }],
    },
    fields: expect.arrayContaining([{ type: "date", id: "dob", name: "Date of birth", required: true }]),
  });
  expect(whole).toEqual(first.collectData);
  const both = await setUp({});
  const all = await both.options(await makePayment(api, both));
  expect([all.whole, all.first.collectData, all.second.collectData].every((given) => given !== null)).toBe(true);
});

test("a policy applies from a minimum amount, in its own unit", async () => {
  const merchant = await setUp({ unit: "iso4217/USD", minimum: 1_000n });
  const asksForData = async (value: string) => {
    const { whole } = await merchant.options(
      await makePayment(api, merchant, { amount: { unit: "iso4217/USD", value } }),
    );
    return whole !== null;
  };
  expect([await asksForData("999"), await asksForData("1000")]).toEqual([false, true]);
});

test("a payment lives twenty minutes if it may ask for data, and five otherwise", async () => {
  const lifetime = async (merchant: Parameters<typeof makePayment>[1]) => {
    const { body } = await api.get(`/v1/payments/${await makePayment(api, merchant)}`, merchant.headers);
    return Math.round((Number(body["expiresAt"]) * 1_000 - Date.parse(body["createdAt"] as string)) / 60_000);
  };
  expect([await lifetime(await setUp({ asset })), await lifetime(await setUp())]).toEqual([20, 5]);
});

test("a confirm without the required data is refused while the payment waits, and one with it succeeds", async () => {
  const merchant = await setUp({ asset });
  const id = await makePayment(api, merchant);
  const { first } = await merchant.options(id);
  const refused = await merchant.confirm(id, first);
  expect(refused).toMatchObject({ status: 400, body: { code: "invalid_params" } });
  expect(refused.body["message"]).toContain("collectedData");
  expect(await api.db.selectFrom("attempt").select("id").where("payment_id", "=", id).execute()).toEqual([]);
  expect(await merchant.confirm(id, first, zoe)).toMatchObject({ status: 200, body: { status: "requires_action" } });
  await verifyAll(id);
  expect(await merchant.confirm(id, first, zoe)).toMatchObject({ status: 200, body: { status: "succeeded" } });
  expect(await merchant.confirm(id, first)).toMatchObject({ status: 200, body: { status: "succeeded" } });
  expect(await readCollected(api.deps, id)).toMatchObject([{ fields: zoe }]);
});

test("an option that requires no data stores none, even when a wallet sends some", async () => {
  const merchant = await setUp({ asset });
  const id = await makePayment(api, merchant);
  const { second } = await merchant.options(id);
  expect(await merchant.confirm(id, second, zoe)).toMatchObject({ status: 200 });
  expect(await readCollected(api.deps, id)).toEqual([]);
});

test("an option asks for no more data once the page has collected it, and the confirm needs none", async () => {
  const merchant = await setUp({});
  const id = await makePayment(api, merchant);
  const before = await merchant.options(id);
  const post = postTo(before.first);
  expect(await post(zoe.slice(1))).toMatchObject({ status: 400 });
  expect(await post(zoe.with(0, { id: "fullName", value: "Other" }))).toMatchObject({ status: 200 });
  expect(await post(zoe)).toMatchObject({ status: 200 });
  const after = await merchant.options(id);
  expect([after.whole, after.first.collectData, after.second.collectData]).toEqual([null, null, null]);
  expect(await merchant.confirm(id, after.first)).toMatchObject({ status: 200 });
  await verifyAll(id);
  // The last post of the wallet that confirmed is kept.
  expect(await readCollected(api.deps, id)).toMatchObject([{ fields: zoe, proven: true }]);
});

test.each([
  ["a field is missing", zoe.slice(1), "collectedData.fields.fullName: is missing"],
  ["a field is repeated", [...zoe, { id: "dob", value: "1990-02-28" }], "collectedData.fields.dob: is given twice"],
  [
    "a field is not asked for",
    [...zoe, { id: "shoeSize", value: "43" }],
    "collectedData.fields: holds an id that is not asked for",
  ],
  [
    "a date does not exist",
    zoe.with(1, { id: "dob", value: "1990-02-30" }),
    "collectedData.fields.dob: expected a date",
  ],
  [
    "a date has another format",
    zoe.with(1, { id: "dob", value: "28.02.1990" }),
    "collectedData.fields.dob: expected a date",
  ],
  [
    "a date is in the future",
    zoe.with(1, { id: "dob", value: "2999-01-01" }),
    "collectedData.fields.dob: expected a date",
  ],
  [
    "a birth date is too long ago",
    zoe.with(1, { id: "dob", value: "1850-01-01" }),
    "collectedData.fields.dob: expected a date",
  ],
  [
    "the terms are not accepted",
    zoe.with(2, { id: "tosConfirmed", value: "false" }),
    "collectedData.fields.tosConfirmed: expected true",
  ],
  [
    "a country is spelt out",
    zoe.with(3, { id: "pobCountry", value: "Sweden" }),
    "collectedData.fields.pobCountry: expected",
  ],
  ["a place is left out", zoe.slice(0, 4), "expected pobCountry and pobAddress, or porCountry and porAddress"],
  [
    "an address is too long",
    zoe.with(4, { id: "pobAddress", value: "x".repeat(201) }),
    "collectedData.fields.pobAddress: expected",
  ],
  ["a name is blank", zoe.with(0, { id: "fullName", value: "  " }), "collectedData.fields.fullName: expected"],
  ["a value is not a string", [{ id: "dob", value: 1990 }], "collectedData.fields.0.value"],
  ["the fields are a flat object", { fullName: "Zoë" }, "collectedData.fields"],
])("a confirm is refused with the field's name when %s, and nothing is stored", async (_what, fields, message) => {
  const merchant = await setUp({});
  const id = await makePayment(api, merchant);
  const { first } = await merchant.options(id);
  const answer = await merchant.confirm(id, first, fields);
  expect(answer).toMatchObject({ status: 400, body: { code: "invalid_params" } });
  expect(answer.body["message"]).toContain(message);
  expect(await readCollected(api.deps, id)).toEqual([]);
});

test("a place of residence is accepted instead of a place of birth", async () => {
  const merchant = await setUp({});
  const id = await makePayment(api, merchant);
  const { first } = await merchant.options(id);
  const lives = [...zoe.slice(0, 3), { id: "porCountry", value: "SE" }, { id: "porAddress", value: "Uppsala 17" }];
  expect(await merchant.confirm(id, first, lives)).toMatchObject({ status: 200 });
});

test("stored data can be read only with its private key, and a missing one is reported", async () => {
  const merchant = await setUp({});
  const id = await makePayment(api, merchant);
  const { first } = await merchant.options(id);
  await merchant.confirm(id, first, zoe);
  for (const table of ["collected_data", "attempt", "payment", "payment_option", "event"] as const) {
    const rows = JSON.stringify(await api.db.selectFrom(table).selectAll().execute(), (_name, value: unknown) =>
      typeof value === "bigint" ? value.toString() : value,
    );
    for (const secret of ["Ångström", "1990-02-28", "Uppsala", Buffer.from("Uppsala").toJSON().data.join(",")])
      expect(rows).not.toContain(secret);
  }
  expect(await readCollected(api.deps, id)).toMatchObject([{ fields: zoe }]);
  const others = createDecrypt([{ id: "young", bytes: Buffer.alloc(32, 8) }]);
  await expect(readCollected({ ...api.deps, decryptBuyerData: others }, id)).rejects.toThrow(
    "the private key test is not configured",
  );
});

test("a buyer's data that is copied to a row of another payment cannot be read there", async () => {
  const merchant = await setUp({});
  const confirmed = async () => {
    const id = await makePayment(api, merchant);
    const { first } = await merchant.options(id);
    await merchant.confirm(id, first, zoe);
    return id;
  };
  const [one, other] = [await confirmed(), await confirmed()];
  const rowOf = (id: string) => api.db.selectFrom("collected_data").selectAll().where("payment_id", "=", id);
  const { ciphertext } = await rowOf(one).executeTakeFirstOrThrow();
  await api.db.updateTable("collected_data").set({ ciphertext }).where("payment_id", "=", other).execute();
  expect(await readCollected(api.deps, one)).toMatchObject([{ fields: zoe }]);
  await expect(readCollected(api.deps, other)).rejects.toThrow();
});

/** Waits until the log has a line of a request to this route after `since`. */
const waitForLine = (route: string, since: number) =>
  waitFor(() => api.lines.slice(since).some((line) => line.includes(`"route":"${route}"`)), { within: 20_000 });

test("no log line and no job contains collected data", async () => {
  const before = api.lines.length;
  const merchant = await setUp({});
  const id = await makePayment(api, merchant);
  const { first } = await merchant.options(id);
  expect(await merchant.confirm(id, first, zoe)).toMatchObject({ status: 200 });
  const [attempt] = await api.db.selectFrom("attempt").select("id").where("payment_id", "=", id).execute();
  const redis = new Redis(inject("services").redisUrl);
  onTestFinished(() => redis.disconnect());
  const readJobs = async (): Promise<string> => {
    const keys = await redis.keys(`${api.prefix}:*`);
    const types = await Promise.all(keys.map((key) => redis.type(key)));
    const hashes = keys.filter((_key, index) => types[index] === "hash");
    return JSON.stringify(await Promise.all(hashes.map((key) => redis.hgetall(key))));
  };
  await waitFor(async () => (await readJobs()).includes(attempt?.id as string), { within: 20_000 });
  await waitForLine("/v1/gateway/payment/:id/confirm", before);
  const [jobs, lines] = [await readJobs(), api.lines.join("\n")];
  for (const secret of ["Ångström", "1990-02-28", "Uppsala"]) {
    expect(lines).not.toContain(secret);
    expect(jobs).not.toContain(secret);
  }
});

test("data that a wallet prefills is on the page and in no log line", async () => {
  const merchant = await setUp({});
  const id = await makePayment(api, merchant);
  const { first } = await merchant.options(id);
  const before = api.lines.length;
  const prefill = Buffer.from(JSON.stringify({ fullName: "Zoë Ångström-Quux", dob: "1990-02-28" })).toString(
    "base64url",
  );
  const page = await fetch(`${api.url}${new URL(first.collectData?.url ?? "").pathname}?prefill=${prefill}`);
  expect(await page.text()).toContain('value="Zoë Ångström-Quux"');
  await waitForLine("/collect/:id/:optionId/:by", before);
  const lines = api.lines.join("\n");
  for (const secret of [prefill, "Ångström", "1990-02-28"]) expect(lines).not.toContain(secret);
});

test("collected data is deleted when its retention ends, and not earlier", async () => {
  const merchant = await setUp({});
  const id = await makePayment(api, merchant);
  const { first } = await merchant.options(id);
  await merchant.confirm(id, first, zoe);
  const later = (ms: number) => cleanUp({ ...api.deps, now: () => new Date(Date.now() + ms) });
  await later(86_400_000 - 60_000);
  expect(await readCollected(api.deps, id)).toHaveLength(1);
  await later(86_400_000 + 60_000);
  expect(await readCollected(api.deps, id)).toEqual([]);
});

test("a policy that was removed no longer asks for data", async () => {
  const merchant = await setUp();
  const { id } = await addPolicy(api.deps, {
    actor: testActor,
    merchantId: merchant.merchantId,
    asset: null,
    unit: null,
    minimum: null,
  });
  expect(await removePolicy(api.deps, { actor: testActor, id })).toBe(true);
  expect(await removePolicy(api.deps, { actor: testActor, id })).toBe(false);
  expect((await merchant.options(await makePayment(api, merchant))).whole).toBeNull();
});
