import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import type { Hex } from "viem";
import { expect, test } from "vitest";
import { networksFor, startChain } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { deployTestContract, testContract } from "../../../support/test-contracts.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { makeMerchant, makePayment, startApi, type TestMerchant } from "../start-api.ts";

const chain = await startChain();
const oracle = await deployTestContract(chain.client, "Oracle", "Oracle");
const proxy = await startFaultProxy({ target: chain.url });
const api = await startApi({
  networks: await networksFor(chain, { rpcUrls: [proxy.url], change: { screening: { oracle } } }),
});

const addressOf = (index: number): Hex => `0x${String(index + 10).repeat(20)}`;
const accountOf = (index: number) => `${chain.id}:${addressOf(index)}`;
/** As many destinations as a request may have, each of another account. */
const entries = Array.from({ length: 50 }, (_, index) => ({
  asset: `${chain.id}/erc20:${addressOf(index)}`,
  destination: accountOf(index + 1),
}));
const pathOf = ({ merchantId }: TestMerchant) => `/v1/merchants/${merchantId}/settlements/crypto`;
const add = (merchant: TestMerchant, settlements: object[] = entries) =>
  api.post(pathOf(merchant), { ...merchant.headers, "idempotency-key": randomUUID() }, { settlements });
async function change(merchant: TestMerchant, destination: string) {
  const { body } = await api.get(`/v1/merchants/${merchant.merchantId}/settlements`, merchant.headers);
  const [{ id }] = body["crypto"] as [{ id: string }];
  return api.put(`${pathOf(merchant)}/${id}`, merchant.headers, { destination });
}
const countCalls = () => proxy.calls["eth_call"] ?? 0;
async function countOpenTransactions() {
  const { rows } = await sql<{ count: number }>`select count(*)::int as count from pg_stat_activity
    where datname = current_database() and state like 'idle in transaction%'`.execute(api.db);
  return rows[0]?.count;
}

test("requests that wait for the sanctions oracle hold no transaction open, and payments are created meanwhile", async () => {
  // As many as the api has connections to the database.
  const [last, ...first] = await Promise.all(Array.from({ length: 5 }, () => makeMerchant(api, { mode: "live" })));
  if (!last) throw new Error("no merchant");
  await add(last, [{ asset: chain.asset, destination: accountOf(60) }]);
  const before = countCalls();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  proxy.hold(({ method }) => (method === "eth_call" ? released : undefined));
  const answers = Promise.all([...first.map((merchant) => add(merchant)), change(last, accountOf(70))]);
  await waitFor(() => countCalls() - before >= 5, { within: 60_000, what: "calls of the oracle" });
  expect(await countOpenTransactions()).toBe(0);
  expect(await makePayment(api, last)).toMatch(/^pay_/);
  release();
  expect((await answers).map(({ status }) => status)).toEqual([201, 201, 201, 201, 200]);
  proxy.hold(undefined);
});

test("all destinations of a request are screened by one call", async () => {
  const merchant = await makeMerchant(api, { mode: "live" });
  const before = countCalls();
  expect((await add(merchant)).status).toBe(201);
  expect(countCalls() - before).toBe(1);
});

test("destinations of a test merchant are added and changed without a call to an endpoint", async () => {
  const merchant = await makeMerchant(api, { mode: "test" });
  const before = countCalls();
  expect((await add(merchant)).status).toBe(201);
  expect((await change(merchant, accountOf(71))).status).toBe(200);
  expect(countCalls()).toBe(before);
});

test("an account that the oracle lists is refused with its entry's name, and no entry is added", async () => {
  const merchant = await makeMerchant(api, { mode: "live" });
  const { abi } = testContract("Oracle", "Oracle");
  const args = [addressOf(80), true];
  const hash = await chain.client.writeContract({ address: oracle, abi, functionName: "name_", args });
  await chain.client.waitForTransactionReceipt({ hash });
  const [one, two, three] = entries;
  const added = await add(merchant, [one, { ...two, destination: accountOf(80) }, three] as object[]);
  expect(added).toMatchObject({ status: 400, body: { code: "params_validation" } });
  expect(added.body["message"]).toBe("settlements.1.destination: the account is not served");
  const changed = await change(merchant, accountOf(80));
  expect(changed).toMatchObject({ status: 400, body: { message: "destination: the account is not served" } });
  const listed = await api.get(`/v1/merchants/${merchant.merchantId}/settlements`, merchant.headers);
  expect(listed.body["crypto"]).toHaveLength(1);
});
