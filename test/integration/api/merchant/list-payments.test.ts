import { sql } from "kysely";
import { expect, test } from "vitest";
import { selectPage } from "../../../../db/queries/payment-lists.ts";
import { createMerchant } from "../../../../payments/merchants/merchants.ts";
import { testActor } from "../../../support/test-actor.ts";
import { asset, makeMerchant, makePayment, movePayment, startApi } from "../start-api.ts";

const api = await startApi();
type Item = { paymentId: string; merchantId: string; status: string };

async function list(path: string, headers: Record<string, string>) {
  const answer = await api.get(path, headers);
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body as { data: Item[]; nextCursor: string | null; stats: Record<string, unknown> };
}
const idsOf = (page: { data: Item[] }) => page.data.map(({ paymentId }) => paymentId);

/** A merchant with five payments of rising amounts, the third of which is paid. */
async function setUp() {
  const merchant = await makeMerchant(api);
  const ids: string[] = [];
  for (let index = 0; index < 5; index += 1)
    ids.push(
      await makePayment(api, merchant, {
        referenceId: `order/${index}`,
        amount: { unit: "iso4217/USD", value: String(100 + index) },
      }),
    );
  const paid = ids[2] as string;
  await movePayment(api, paid, "requires_action", "processing");
  await movePayment(api, paid, "processing", "succeeded");
  return { ...merchant, ids, paid };
}

test("a merchant's payments are listed page by page, newest first, each once, also while new ones are created", async () => {
  const merchant = await setUp();
  const seen: string[] = [];
  let path: string | undefined = "/v1/merchants/payments?limit=2";
  while (path) {
    const page = await list(path, merchant.headers);
    seen.push(...idsOf(page));
    await makePayment(api, merchant);
    path = page.nextCursor ? `/v1/merchants/payments?limit=2&cursor=${page.nextCursor}` : undefined;
  }
  expect(seen).toEqual(merchant.ids.toReversed());
});

test("payments can be sorted by date or amount, in both directions", async () => {
  const { headers, ids } = await setUp();
  expect(idsOf(await list("/v1/merchants/payments?sortDir=asc", headers))).toEqual(ids);
  expect(idsOf(await list("/v1/merchants/payments?sortBy=amount&sortDir=asc", headers))).toEqual(ids);
  const first = await list("/v1/merchants/payments?sortBy=amount&limit=3", headers);
  const second = await list(`/v1/merchants/payments?sortBy=amount&limit=3&cursor=${first.nextCursor}`, headers);
  expect([...idsOf(first), ...idsOf(second)]).toEqual(ids.toReversed());
});

test("payments can be filtered by status, time, reference, symbol and network", async () => {
  const { headers, ids, paid } = await setUp();
  const found = async (query: string) => idsOf(await list(`/v1/merchants/payments?sortDir=asc&${query}`, headers));
  expect(await found("status=succeeded")).toEqual([paid]);
  expect(await found("status=succeeded&status=requires_action")).toEqual(ids);
  expect(await found("referenceId=ORDER/3")).toEqual([ids[3]]);
  expect(await found("referenceId=%2B%2B%2B")).toEqual([]);
  expect(await found("endTs=2020-01-01T00:00:00Z")).toEqual([]);
  expect(await found("startTs=2020-01-01T00:00:00%2B02:00")).toEqual(ids);
  // Only a payment that a buyer has begun to pay has a token and a network.
  expect(await found("token_symbol=USDC&token_symbol=EURC")).toEqual([paid]);
  expect(await found("token_symbol=EURC")).toEqual([]);
  expect(await found("network=eip155:31337,eip155:1")).toEqual([paid]);
  expect(await found("network=eip155:1&network=eip155:31337")).toEqual([paid]);
  expect(await found("network=eip155:1")).toEqual([]);
});

test("a paid payment names its payer, asset and network, and the totals cover all matching payments", async () => {
  const { headers, wallet, merchantId } = await makeMerchant(api);
  const buyer = `eip155:31337:0x${"c1".repeat(20)}`;
  const id = await makePayment(api, { headers } as never);
  await makePayment(api, { headers } as never);
  const options = await api.post(`/v1/gateway/payment/${id}/options`, wallet, { accounts: [buyer] });
  const [option] = options.body["options"] as [{ id: string }];
  await api.db.updateTable("payment").set({ option_id: option.id, asset }).where("id", "=", id).execute();
  await movePayment(api, id, "requires_action", "processing");
  await movePayment(api, id, "processing", "succeeded");
  const page = await list("/v1/merchants/payments?status=succeeded&token_symbol=USDC&network=eip155:31337", headers);
  expect(page.data).toMatchObject([
    {
      paymentId: id,
      merchantId,
      merchant: { id: merchantId, name: "Shop" },
      isTerminal: true,
      fiatAmount: { unit: "iso4217/USD", value: "500" },
      tokenAmount: { unit: `caip19/${asset}`, value: "5000000", display: { assetSymbol: "USDC" } },
      buyer: { accountCaip10: buyer },
      transaction: { networkId: "eip155:31337", hash: `test:${id}` },
    },
  ]);
  const all = await list("/v1/merchants/payments?limit=1", headers);
  expect(all.stats).toEqual({
    totalRevenue: [{ amount: 5, currency: "USD" }],
    totalTransactions: 2,
    totalCustomers: 1,
  });
});

test("an account lists the payments of all its merchants, and of no other account", async () => {
  const one = await setUp();
  const stranger = await setUp();
  expect(idsOf(await list("/v1/payments?sortDir=asc", { "api-key": one.key }))).toEqual(one.ids);
  const narrowed = await list(`/v1/payments?merchantId=${stranger.merchantId}`, { "api-key": one.key });
  expect(narrowed.data).toEqual([]);
  expect(idsOf(await list(`/v1/payments?merchantId=${one.merchantId}&sortDir=asc`, { "api-key": one.key }))).toEqual(
    one.ids,
  );
});

test("a Merchant-Id narrows the list of an account to that merchant, unless the query names merchants", async () => {
  const one = await setUp();
  const other = await createMerchant(api.deps, {
    actor: testActor,
    accountId: one.accountId,
    mode: "test",
    name: "Other shop",
    email: "other@example.test",
  });
  const headers = { "api-key": one.key, "merchant-id": other.id };
  expect(await list("/v1/payments", headers)).toMatchObject({ data: [], stats: { totalTransactions: 0 } });
  expect(idsOf(await list("/v1/payments?sortDir=asc", { ...headers, "merchant-id": one.merchantId }))).toEqual(one.ids);
  expect(idsOf(await list(`/v1/payments?merchantId=${one.merchantId}&sortDir=asc`, headers))).toEqual(one.ids);
  const wrong = await api.get("/v1/payments", { ...headers, "merchant-id": "mrch_x" });
  expect(wrong).toMatchObject({ status: 400, body: { message: expect.stringMatching(/^merchantId: /) } });
});

test("the deprecated filter asset, which the published API ignores, is accepted and filters nothing", async () => {
  const one = await setUp();
  expect(idsOf(await list("/v1/merchants/payments?asset=EURC&sortDir=asc", one.headers))).toEqual(one.ids);
});

test.each([
  "limit=201",
  "limit=x",
  "status=pending",
  "sortBy=name",
  "startTs=yesterday",
  "cursor=abc",
  `cursor=${Buffer.from('["x","y"]').toString("base64url")}`,
  ...["9999-99-99T00:00:00.000Z", "2026-02-31T00:00:00.000Z", "0000-01-01T00:00:00.000Z"].map(
    (time) => `cursor=${Buffer.from(JSON.stringify([time, "pay_1"])).toString("base64url")}`,
  ),
  "referenceId=",
  "referenceId=a%0Ac",
  "network=base",
  "network=",
  "network=eip155:1&network=base",
  "token_symbol=",
  "limit=1&limit=2",
  "reference_id=order-1",
  "status[]=succeeded",
  "metadata[order]=1",
  "endTs=2026-02-31T00:00:00Z",
])("a list with %s is refused", async (query) => {
  const { headers } = await makeMerchant(api);
  const answer = await api.get(`/v1/merchants/payments?${query}`, headers);
  expect(answer).toMatchObject({ status: 400, body: { code: "params_validation" } });
  expect(answer.body["message"]).toContain(query.split("=", 1)[0]);
  expect(answer.body["message"]).not.toContain("Invalid");
});

test("a list for a merchant of another account or mode, or for an unknown one, is refused", async () => {
  const { headers, key } = await makeMerchant(api);
  const live = await makeMerchant(api, { mode: "live" });
  for (const id of [(await setUp()).merchantId, live.merchantId, `mrch_${"0".repeat(32)}`, "x y"])
    expect(await api.get("/v1/merchants/payments", { ...headers, "merchant-id": id })).toMatchObject({
      status: 404,
      body: { code: "merchant_not_found" },
    });
  const { body } = await api.get("/v1/payments?merchantId=mrch_x", { "api-key": key });
  expect(body).toMatchObject({ code: "params_validation", message: expect.stringMatching(/^merchantId: /) });
});

test("the payments of a deleted merchant stay readable", async () => {
  const { headers, key, merchantId, ids } = await setUp();
  expect(await api.delete(`/v1/merchants/${merchantId}`, { "api-key": key })).toMatchObject({ status: 200 });
  expect(idsOf(await list("/v1/merchants/payments?sortDir=asc", headers))).toEqual(ids);
});

test("payments of the same time and amount are listed once each, in every order", async () => {
  const { headers, ids } = await setUp();
  await api.db.updateTable("payment").set({ created_at: new Date(), value: 100n }).where("id", "in", ids).execute();
  for (const sortBy of ["date", "amount"])
    for (const sortDir of ["asc", "desc"]) {
      const seen: string[] = [];
      let cursor: string | null = "";
      while (cursor !== null) {
        const start: string = cursor && `&cursor=${cursor}`;
        const page = await list(`/v1/merchants/payments?limit=2&sortBy=${sortBy}&sortDir=${sortDir}${start}`, headers);
        seen.push(...idsOf(page));
        cursor = page.nextCursor;
      }
      expect(seen).toEqual(sortDir === "asc" ? ids.toSorted() : ids.toSorted().toReversed());
    }
});

test("a time range includes its start and excludes its end", async () => {
  const { headers, ids } = await setUp();
  const rows = await api.db
    .selectFrom("payment")
    .select("created_at")
    .where("id", "in", ids)
    .orderBy("created_at")
    .execute();
  const [first, last] = [rows[0], rows[4]].map((row) => row?.created_at.toISOString());
  const between = idsOf(await list(`/v1/merchants/payments?startTs=${first}&endTs=${last}&sortDir=asc`, headers));
  expect(between).toContain(ids[0]);
  expect(between).not.toContain(ids[4]);
});

test("a test payment that was simulated to succeed is listed with the asset that paid it", async () => {
  const merchant = await makeMerchant(api);
  const id = await makePayment(api, merchant);
  await makePayment(api, merchant);
  await api.post(`/v1/payments/${id}/simulate`, merchant.headers, { status: "succeeded" });
  for (const query of ["status=succeeded", "token_symbol=USDC", "network=eip155:31337"]) {
    const { data } = await list(`/v1/merchants/payments?${query}`, merchant.headers);
    expect(data).toMatchObject([
      {
        paymentId: id,
        tokenAmount: { unit: `caip19/${asset}`, value: "5000000" },
        buyer: null,
        transaction: { networkId: "eip155:31337", hash: `test:${id}` },
      },
    ]);
  }
});

test("each currency has its own exact total, and a returning buyer counts as one customer", async () => {
  const merchant = await makeMerchant(api);
  const paidBy = async (payer: string, amount: { unit: string; value: string }) => {
    const dollars = amount.unit === "iso4217/USD";
    const id = await makePayment(api, merchant, dollars ? { amount } : {});
    // As if an asset of that currency had existed then.
    const { unit, value } = amount;
    if (!dollars)
      await api.db
        .updateTable("payment")
        .set({ unit, value: BigInt(value) })
        .where("id", "=", id)
        .execute();
    if (dollars) {
      const accounts = [`eip155:31337:0x${payer.repeat(20)}`];
      const { body } = await api.post(`/v1/gateway/payment/${id}/options`, merchant.wallet, { accounts });
      const option_id = (body["options"] as [{ id: string }])[0].id;
      await api.db.updateTable("payment").set({ option_id, asset }).where("id", "=", id).execute();
    }
    await movePayment(api, id, "requires_action", "processing");
    await movePayment(api, id, "processing", "succeeded");
  };
  await paidBy("aa", { unit: "iso4217/USD", value: "10" });
  await paidBy("AA", { unit: "iso4217/USD", value: "20" });
  await paidBy("bb", { unit: "iso4217/USD", value: "900719925474073" });
  await paidBy("cc", { unit: "iso4217/JPY", value: "7" });
  const { stats } = await list("/v1/merchants/payments", merchant.headers);
  expect(stats).toEqual({
    totalRevenue: [
      { amount: 7, currency: "JPY" },
      { amount: 9007199254741.03, currency: "USD" },
    ],
    totalTransactions: 4,
    totalCustomers: 2,
  });
});

test("a cursor of another sort order is refused, and never an internal error", async () => {
  const { headers } = await setUp();
  const { nextCursor } = await list("/v1/merchants/payments?limit=2", headers);
  const crossed = await api.get(`/v1/merchants/payments?sortBy=amount&cursor=${nextCursor}`, headers);
  expect(crossed).toMatchObject({ status: 400, body: { code: "params_validation" } });
  const amounts = await list("/v1/merchants/payments?sortBy=amount&limit=2", headers);
  const back = await api.get(`/v1/merchants/payments?cursor=${amounts.nextCursor}`, headers);
  expect(back).toMatchObject({ status: 400, body: { code: "params_validation" } });
});

test("unfiltered lists are read through an index, however many payments there are", async () => {
  const { accountId, merchantId } = await setUp();
  // Without the events of each payment.
  await sql`alter table payment disable trigger user`.execute(api.db);
  await sql`insert into payment (id, account_id, merchant_id, mode, unit, value, state, created_at, updated_at, expires_at)
    select 'pay_' || md5(i::text), ${accountId}, ${merchantId}, 'test', 'iso4217/USD', i, 'requires_action',
      now() - i * interval '1 second', now(), now() from generate_series(1, 20000) i`.execute(api.db);
  await sql`alter table payment enable trigger user`.execute(api.db);
  await sql`analyze`.execute(api.db);
  const day = new Date(Date.now() - 10_000_000).toISOString();
  for (const merchantIds of [undefined, [merchantId]])
    for (const dir of ["asc", "desc"] as const)
      for (const after of [undefined, [day, "pay_1"] as const]) {
        const filter = { accountId, mode: "test" as const, merchantIds };
        const plan = await explain(
          selectPage(api.db, filter, { order: { by: "date", dir, after }, limit: 51, matching: 1 }),
        );
        expect(plan).toMatch(/Index Scan (Backward )?using payment_(account|merchant) /);
        expect(plan).not.toContain("Seq Scan on payment p");
        // A later page starts at its cursor and does not read the pages before.
        if (after) expect(plan).toMatch(/Index Cond: .*created_at [<>]=/);
      }
});

test("the payout of each listed payment is found through an index, however many transfers there are", async () => {
  const { accountId } = await makeMerchant(api);
  const plan = await api.db.transaction().execute(async (db) => {
    // Transfers of settlements that do not exist: only their number matters here.
    await sql`set local session_replication_role = replica`.execute(db);
    await sql`insert into transfer (id, purpose, settlement_id, chain, asset, token, payer, receiver, amount,
        authorization_nonce, valid_before, signature, state, created_at)
      select 'trf_' || i, 'settlement', 'stl_' || i, 'eip155:1', '', '', '', '', 1, i, 1, '', 'confirmed', now()
      from generate_series(1, 20000) i`.execute(db);
    await sql`insert into ledger_group (kind, subject, at)
      select 'settlement_paid', 'trf_' || i, now() from generate_series(1, 20000) i`.execute(db);
    await sql`analyze transfer, ledger_group`.execute(db);
    return explain(
      selectPage(db, { accountId, mode: "live" }, { order: { by: "date", dir: "desc" }, limit: 51, matching: 1 }),
    );
  });
  expect(plan).toContain("using transfer_settlement");
  expect(plan).not.toMatch(/Seq Scan on (transfer|ledger_group)/);
});

async function explain(query: ReturnType<typeof selectPage>): Promise<string> {
  return (await query.explain()).map((row) => Object.values(row)[0]).join("\n");
}
