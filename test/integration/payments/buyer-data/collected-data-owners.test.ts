import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { type CollectedField, readCollected } from "../../../../payments/buyer-data/collected-data.ts";
import { addPolicy } from "../../../../payments/buyer-data/collection-policies.ts";
import { createVerify } from "../../../../payments/lifecycle/verify-batches.ts";
import { cleanUp } from "../../../../payments/maintenance/clean-up.ts";
import { createVerifier } from "../../../../transfers/verifier.ts";
import { testActor } from "../../../support/test-actor.ts";
import { makeMerchant, makePayment, startApi } from "../../api/start-api.ts";

const api = await startApi();
const merchant = await makeMerchant(api);
await addPolicy(api.deps, {
  actor: testActor,
  merchantId: merchant.merchantId,
  asset: null,
  unit: null,
  minimum: null,
});

type Option = {
  id: string;
  actions: [{ data: { params: [string, string] } }];
  collectData: { url: string } | null;
};
const person = (fullName: string): CollectedField[] => [
  { id: "fullName", value: fullName },
  { id: "dob", value: "1990-02-28" },
  { id: "tosConfirmed", value: "true" },
  { id: "pobCountry", value: "SE" },
  { id: "pobAddress", value: "Uppsala 17" },
];
const [truth, forged] = [person("Zoë Quux"), person("Mallory")];

/**
 * A payment, its buyer, and two wallets that request options for the buyer's account: the buyer's own and a stranger's.
 */
async function openPayment({ first = "victim" }: { first?: "victim" | "stranger" } = {}) {
  const id = await makePayment(api, merchant);
  const buyer = privateKeyToAccount(newKey().privateKey);
  const openWallet = async (clientId: string) => {
    const headers = { ...merchant.wallet, "client-id": clientId };
    const list = async () => {
      const asked = { accounts: [`eip155:31337:${buyer.address}`] };
      const { body } = await api.post(`/v1/gateway/payment/${id}/options`, headers, asked);
      return (body["options"] as [Option])[0];
    };
    const option = await list();
    const by = new URL(option.collectData?.url ?? "").pathname.split("/").at(-1);
    const { types, ...rest } = JSON.parse(option.actions[0].data.params[1]);
    const { EIP712Domain: _, ...own } = types;
    const signature = await buyer.signTypedData({ ...rest, types: own });
    return {
      asksForData: async () => (await list()).collectData !== null,
      post: (fields: CollectedField[]) =>
        api.post(`/checkout/${id}/collect/${by}`, {}, { optionId: option.id, fields }),
      confirm: (fields?: CollectedField[], proof: string = signature) =>
        api.post(`/v1/gateway/payment/${id}/confirm?maxPollMs=1`, headers, {
          optionId: option.id,
          results: [{ type: "walletRpc", data: [proof] }],
          ...(fields && { collectedData: { fields } }),
        }),
    };
  };
  const verify = async () => {
    const forJobs = { isTransient: () => false, withoutRequestContext: <T>(work: () => T) => work() };
    const run = createVerify({ ...api.deps, ...forJobs, verifier: createVerifier(api.deps) });
    const rows = await api.db
      .selectFrom("attempt")
      .select("id")
      .where("payment_id", "=", id)
      .where("state", "=", "waiting")
      .execute();
    for (const one of rows) await run(one.id);
  };
  const early = first === "stranger" ? await openWallet("stranger") : undefined;
  const victim = await openWallet("victim");
  return { id, victim, stranger: early ?? (await openWallet("stranger")), verify };
}
const keptOf = async (id: string) =>
  (await readCollected(api.deps, id)).map(({ fields, proven }) => ({ fields, proven }));
const isTheTruth = [{ fields: truth, proven: true }];

test("data that a stranger posts for the buyer's account does not count as the buyer's", async () => {
  const { id, victim, stranger } = await openPayment();
  expect(await stranger.post(forged)).toMatchObject({ status: 200 });
  expect([await stranger.asksForData(), await victim.asksForData()]).toEqual([false, true]);
  expect(await victim.confirm()).toMatchObject({ status: 400, body: { code: "invalid_params" } });
  expect(await keptOf(id)).toEqual([{ fields: forged, proven: false }]);
});

test.each(["before the buyer", "between the buyer's post and the buyer's confirm", "after the buyer's confirm"])(
  "data that a stranger posts %s stays out of the data that the buyer pays with",
  async (when) => {
    const { id, victim, stranger, verify } = await openPayment();
    if (when.startsWith("before")) await stranger.post(forged);
    await victim.post(truth);
    if (when.startsWith("between")) await stranger.post(forged);
    expect(await victim.confirm()).toMatchObject({ status: 200 });
    if (when.startsWith("after")) await stranger.post(forged);
    await verify();
    expect(await victim.confirm()).toMatchObject({ status: 200, body: { status: "succeeded" } });
    expect(await keptOf(id)).toEqual(isTheTruth);
    expect(await stranger.post(forged)).toMatchObject({ status: 400, body: { code: "invalid_state" } });
  },
);

test("a stranger's confirm with forged data and an invalid signature leaves the buyer's data unchanged", async () => {
  const { id, victim, stranger, verify } = await openPayment();
  expect(await stranger.confirm(forged, `0x${"11".repeat(64)}1b`)).toMatchObject({ status: 200 });
  await victim.post(truth);
  await victim.confirm();
  await stranger.confirm(forged, `0x${"22".repeat(64)}1b`);
  await verify();
  expect(await keptOf(id)).toEqual(isTheTruth);
});

test("the buyer replaces posted and confirmed data until the signature is verified", async () => {
  const { id, victim, verify } = await openPayment();
  await victim.post(person("Zoe Qux"));
  await victim.confirm();
  expect(await victim.confirm(person("Zoë Qux"))).toMatchObject({ status: 200 });
  await victim.post(truth);
  expect(await victim.confirm(truth.slice(1))).toMatchObject({ status: 400, body: { code: "invalid_params" } });
  expect(await victim.confirm()).toMatchObject({ status: 200 });
  await verify();
  expect(await keptOf(id)).toEqual(isTheTruth);
  expect(await victim.confirm(forged)).toMatchObject({ status: 200, body: { status: "succeeded" } });
  expect(await keptOf(id)).toEqual(isTheTruth);
});

test("an unknown requester in the URL has no data page and stores no data", async () => {
  const { id } = await openPayment();
  const [option] = await api.db.selectFrom("payment_option").select("id").where("payment_id", "=", id).execute();
  for (const by of ["unknown", "x".repeat(23)]) {
    const answer = await api.post(`/checkout/${id}/collect/${by}`, {}, { optionId: option?.id, fields: truth });
    expect(answer).toMatchObject({ status: 404, body: { code: "payment_not_found" } });
    expect((await fetch(`${api.url}/collect/${id}/${option?.id}/${by}`)).status).toBe(404);
  }
});

let names = 0;
/** Posts forged data under so many new names that no wallet has. */
async function postAsStrangers(id: string, strangers: number): Promise<void> {
  const [option] = await api.db.selectFrom("payment_option").select("id").where("payment_id", "=", id).execute();
  for (let posts = 0; posts < strangers; posts += 1) {
    names += 1;
    const by = String(names).padStart(22, "n");
    const posted = await api.post(`/checkout/${id}/collect/${by}`, {}, { optionId: option?.id, fields: forged });
    expect(posted.status).toBe(200);
  }
}
const countPosts = async (id: string) =>
  (await api.db.selectFrom("collected_data").select("id").where("payment_id", "=", id).execute()).length;

test.each([
  ["after the buyer, who has requested the options first", "victim", 0, 60],
  ["before and after the buyer, who has requested the options first", "victim", 30, 30],
  ["after the buyer, who has requested the options after a stranger", "stranger", 0, 60],
  ["before the buyer, who has requested the options after a stranger", "stranger", 60, 0],
] as const)(
  "a buyer's confirm has the buyer's data although sixty strangers post %s",
  async (_when, first, before, after) => {
    const { id, victim, verify } = await openPayment({ first });
    await postAsStrangers(id, before);
    await victim.post(person("Zoe Qux"));
    await postAsStrangers(id, after / 2);
    // A second post keeps the place of the first one.
    await victim.post(truth);
    await postAsStrangers(id, after / 2);
    expect(await countPosts(id)).toBeLessThanOrEqual(51);
    expect(await countPosts(id)).toBeGreaterThanOrEqual(50);
    expect(await victim.asksForData()).toBe(false);
    expect(await victim.confirm()).toMatchObject({ status: 200 });
    await verify();
    expect(await keptOf(id)).toEqual(isTheTruth);
  },
);

test("data without a verified signature is deleted a day after the deadline, and verified data is kept its full time", async () => {
  const { id, victim, stranger, verify } = await openPayment();
  await stranger.post(forged);
  await victim.post(truth);
  await victim.confirm();
  const { expires_at: deadline } = await api.db
    .selectFrom("payment")
    .select("expires_at")
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  const after = (ms: number) => new Date(deadline.getTime() + ms);
  const day = 86_400_000;
  await api.db
    .updateTable("collected_data")
    .set({ delete_at: after(day), keep_until: after(30 * day) })
    .where("payment_id", "=", id)
    .execute();
  await verify();
  await cleanUp({ ...api.deps, now: () => after(day + 1) });
  const rows = await api.db.selectFrom("collected_data").select("delete_at").where("payment_id", "=", id).execute();
  expect(rows).toEqual([{ delete_at: after(30 * day) }]);
  expect(await keptOf(id)).toEqual(isTheTruth);
  await cleanUp({ ...api.deps, now: () => after(30 * day + 1) });
  expect(await keptOf(id)).toEqual([]);
});
