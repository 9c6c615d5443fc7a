import { text } from "node:stream/consumers";
import type { ReadableStream } from "node:stream/web";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { execute } from "../../../support/execute-sql.ts";
import { type Api, asset, makeMerchant, startApi } from "../start-api.ts";

const period = "from=2020-01-01&until=2035-01-01";

/** Runs work while every read of an opening balance waits. */
const holdOpenings = <T>(api: Api, work: () => Promise<T>): Promise<T> =>
  api.db.transaction().execute(async (db) => {
    await sql`lock table ledger_day`.execute(db);
    return work();
  });

test("statements of one account that take long leave connections to others, and further ones are refused", async () => {
  const api = await startApi();
  const [slow, other] = [await makeMerchant(api), await makeMerchant(api)];
  const paths = ["/v1/statement", `/v1/merchants/${slow.merchantId}/statement`, "/v1/statement.csv"];
  const answers = await holdOpenings(api, async () => {
    const reads = Array.from({ length: 12 }, (_one, index) =>
      fetch(`${api.url}${paths[index % paths.length]}?${period}`, { headers: slow.headers }),
    );
    const refused = reads.map((read) =>
      read.then(({ status }) => (status === 429 ? undefined : Promise.reject(status))),
    );
    await Promise.any(refused);
    const amount = { unit: "iso4217/USD", value: "500" };
    expect(await api.post("/v1/payments", other.headers, { amount })).toMatchObject({ status: 201 });
    return reads;
  }).then((reads) => Promise.all(reads));
  const limited = answers.filter(({ status }) => status === 429);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(2);
  expect(limited).toHaveLength(10);
  for (const answer of limited) {
    expect(await answer.json()).toMatchObject({ code: "rate_limited" });
    expect(answer.headers.get("retry-after")).toBe("5");
    expect(answer.headers.get("content-disposition")).toBe(null);
  }
});

test("a download of a statement that has begun waits for its next part, and ends complete", {
  timeout: 180_000,
}, async () => {
  const api = await startApi();
  const { merchantId, headers } = await makeMerchant(api);
  // More than the sockets hold, so that the service waits for the client.
  const lines = 80_000;
  const at = "now() - interval '20 days'";
  const account = `payable:${merchantId}`;
  await execute(
    api.databaseUrl,
    "set session_replication_role = replica",
    `insert into ledger_group (kind, subject, at) select 'payment', 'trf_' || n, ${at} from generate_series(1, ${lines}) n`,
    `insert into ledger_entry (group_id, account, asset, amount) select id, '${account}', '${asset}', -100 from ledger_group`,
    `insert into ledger_day (account, asset, day, shard, amount) values ('${account}', '${asset}', (${at})::date, 0, ${-100 * lines})`,
    "analyze ledger_group",
    "analyze ledger_entry",
  );
  const begun = await fetch(`${api.url}/v1/statement.csv?${period}`, { headers });
  const readPage = () => api.get(`/v1/statement?${period}`, headers);
  const { download, pages } = await holdOpenings(api, async () => {
    const pages = [readPage(), readPage(), readPage()];
    // Two pages hold what the account may use.
    await Promise.any(pages.map(async (page) => (await page).status === 429 || Promise.reject()));
    const download = text(begun.body as ReadableStream);
    // The download waits longer than the first of these, and the second one begins when it has been refused.
    expect(await readPage()).toMatchObject({ status: 429 });
    expect(await readPage()).toMatchObject({ status: 429 });
    return { download, pages };
  });
  const whole = (await download).split("\r\n");
  expect(whole.filter((line) => line.includes(",payment,"))).toHaveLength(lines);
  expect(whole.at(-2)).toContain(",closing,");
  expect((await Promise.all(pages)).map(({ status }) => status).toSorted()).toEqual([200, 200, 429]);
});
