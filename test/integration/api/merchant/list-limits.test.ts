import { sql } from "kysely";
import { expect, test } from "vitest";
import { makeMerchant, startApi } from "../start-api.ts";

test("lists of one account that take long leave connections to others, and those without a turn are refused", async () => {
  const api = await startApi();
  const [slow, other] = [await makeMerchant(api), await makeMerchant(api)];
  const lists = await api.db.transaction().execute(async (db) => {
    await sql`lock table summed_kind`.execute(db);
    const lists = Array.from({ length: 10 }, (_one, index) =>
      api.get(index % 2 === 0 ? "/v1/payments" : "/v1/merchants/payments", slow.headers),
    );
    const refused = lists.map((list) =>
      list.then(({ status }) => (status === 429 ? "refused" : Promise.reject(status))),
    );
    await Promise.any(refused);
    const amount = { unit: "iso4217/USD", value: "500" };
    expect(await api.post("/v1/payments", other.headers, { amount })).toMatchObject({ status: 201 });
    return lists;
  });
  const answers = await Promise.all(lists);
  const limited = answers.filter(({ status }) => status === 429);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(2);
  expect(limited).toHaveLength(8);
  for (const { body, headers } of limited) {
    expect(body).toMatchObject({ code: "rate_limited" });
    expect(headers.get("retry-after")).toBe("5");
  }
  // Both may run again.
  expect(await api.get("/v1/payments", slow.headers)).toMatchObject({ status: 200 });
});
