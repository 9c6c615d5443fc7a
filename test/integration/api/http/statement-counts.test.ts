import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { inRealTime } from "../../../support/in-real-time.ts";
import { countRows, makeMerchant, makePayment, startApi } from "../start-api.ts";

const api = await startApi();
const shop = await makeMerchant(api);
const body = { amount: { unit: "iso4217/USD", value: "500" } };
const create = (headers = {}) => api.post("/v1/payments", { ...shop.headers, ...headers }, body);

/** Returns the fewest statements of several calls: the process itself reads moves and keys about once a second. */
async function countFewest(call: () => Promise<unknown>): Promise<number> {
  const counts: number[] = [];
  for (let pass = 0; pass < 6; pass += 1) {
    const before = api.statements.count;
    await call();
    counts.push(api.statements.count - before);
  }
  return Math.min(...counts);
}

test("a creation takes two statements, also with an Idempotency-Key", inRealTime, async () => {
  expect(await countFewest(() => create())).toBe(2);
  expect(await countFewest(() => create({ "idempotency-key": `order-${randomUUID()}` }))).toBe(2);
});

test("concurrent creations share their statements, and each key makes one payment", async () => {
  const { payments: before } = (await countRows(api)) as { payments: string };
  let rounds = 0;
  const fewest = await countFewest(async () => {
    rounds += 1;
    const run = randomUUID();
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        create(index % 3 === 0 ? {} : { "idempotency-key": `twin-${run}-${index % 10}` }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
    // Twenty creations without a key, and ten keys.
    expect(new Set(answers.map((answer) => answer.body["paymentId"])).size).toBe(30);
  });
  // One by one they would take 150: two each, and one for each of the thirty that find their key taken.
  expect(fewest).toBeLessThan(120);
  const { payments: after } = (await countRows(api)) as { payments: string };
  expect(Number(after) - Number(before)).toBe(30 * rounds);
});

test("a checkout page takes one statement, and options that did not change take two", inRealTime, async () => {
  const id = await makePayment(api, shop);
  expect(await countFewest(() => fetch(`${api.url}/?pid=${id}`).then((page) => page.text()))).toBe(1);
  const accounts = [`eip155:31337:0x${"c1".repeat(20)}`];
  const options = () => api.post(`/v1/gateway/payment/${id}/options`, shop.wallet, { accounts });
  await options();
  expect(await countFewest(options)).toBe(2);
});
