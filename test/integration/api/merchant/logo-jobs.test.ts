import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { createSafeFetch } from "../../../../runtime/safe-fetch.ts";
import { startHttps } from "../../../support/https-server.ts";
import { plain } from "../../../support/sample-pictures.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { makeMerchant, startApi, type TestMerchant } from "../start-api.ts";

const square = await plain(600, 600).png().toBuffer();
const requests = { count: 0 };
let sendBody = Promise.withResolvers<void>();
const icons = await startHttps(["icons.test"], (request, response) => {
  requests.count += 1;
  const held = request.url === "/held" ? sendBody.promise : Promise.resolve();
  response.writeHead(200, { "content-type": "image/png" }).flushHeaders();
  void held.then(() => response.end(square));
});
const resolve = async () => ["127.0.0.1"];
const api = await startApi({ safeFetch: createSafeFetch({ allowPrivate: true, ca: icons.ca, resolve }) });
const owners: TestMerchant[] = [];
for (let made = 0; made < 8; made += 1) owners.push(await makeMerchant(api));
const [first, second] = owners as [TestMerchant, TestMerchant];

const create = ({ headers }: TestMerchant, path: "/held" | "/now") =>
  api.post(
    "/v1/merchants",
    { ...headers, "idempotency-key": randomUUID() },
    {
      merchantName: randomUUID(),
      merchantEmail: "shop@example.test",
      iconUrl: `https://icons.test:${icons.port}${path}`,
    },
  );
const statusesOf = async (answers: ReturnType<typeof create>[]) =>
  (await Promise.all(answers)).map(({ status }) => status);

/** Starts creations whose logos are held, and returns them once the server has received `count` requests of them. */
async function startHeld(of: readonly TestMerchant[], count: number) {
  sendBody = Promise.withResolvers<void>();
  requests.count = 0;
  const held = of.map((owner) => create(owner, "/held"));
  await waitFor(() => requests.count === count, { within: 20_000 });
  return held;
}

test("one account has one logo fetched at a time, the others are refused at once, and another account's logo is served", async () => {
  const [held] = await startHeld([first], 1);
  const answers = await Promise.all(Array.from({ length: 6 }, () => create(first, "/held")));
  for (const answer of answers) {
    expect(answer).toMatchObject({ status: 429, body: { code: "rate_limited" } });
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
  }
  expect(requests.count).toBe(1);
  const made = (await create(second, "/now")).body["merchant"] as { servedIconUrl: string };
  expect((await fetch(`${api.url}${new URL(made.servedIconUrl).pathname}`)).status).toBe(200);
  sendBody.resolve();
  expect((await held)?.status).toBe(201);
  expect((await create(first, "/now")).status).toBe(201);
});

test("a process fetches four logos at a time, and refuses those of other accounts before it connects", async () => {
  const held = await startHeld(owners.slice(0, 4), 4);
  expect(await statusesOf(owners.slice(4).map((owner) => create(owner, "/held")))).toEqual([429, 429, 429, 429]);
  expect(requests.count).toBe(4);
  sendBody.resolve();
  expect(await statusesOf(held)).toEqual([201, 201, 201, 201]);
  expect((await create(owners[7] as TestMerchant, "/now")).status).toBe(201);
});
