import { randomUUID } from "node:crypto";
import { getAddress } from "viem";
import { expect, test } from "vitest";
import { asset, destination, makeMerchant, networksDocument, startApi } from "../start-api.ts";

const api = await startApi();
const chain = "eip155:31337";
const other = `${chain}/erc20:0x${"a2".repeat(20)}`;
const fresh = () => ({ "idempotency-key": randomUUID() });

/** A merchant that already has a destination for one asset. */
async function setUp() {
  const merchant = await makeMerchant(api);
  const path = `/v1/merchants/${merchant.merchantId}/settlements`;
  const list = async () => (await api.get(path, merchant.headers)).body;
  const add = (...settlements: object[]) =>
    api.post(`${path}/crypto`, { ...merchant.headers, ...fresh() }, { settlements });
  const [first] = ((await list()) as { crypto: { id: string }[] }).crypto;
  return { ...merchant, path, list, add, first: first as { id: string; asset: string; destination: string } };
}

test("destinations are registered, listed, changed and deleted", async () => {
  const { path, list, add, first, headers } = await setUp();
  expect(first).toEqual({ id: expect.stringMatching(/^crypto_/), asset, destination });
  const added = await add({ asset: other, destination });
  expect(added).toMatchObject({ status: 201, body: { settlements: [{ asset: other, destination }] } });
  const [second] = added.body["settlements"] as [{ id: string }];
  expect(await list()).toEqual({ crypto: [first, second], fiat: [] });

  const elsewhere = `${chain}:0x${"d2".repeat(20)}`;
  const changed = await api.put(`${path}/crypto/${second.id}`, headers, { destination: elsewhere });
  expect(changed).toMatchObject({ status: 200, body: { ...second, destination: elsewhere } });
  expect(await api.delete(`${path}/crypto/${second.id}`, headers)).toMatchObject({
    status: 200,
    body: { id: second.id, deleted: true },
  });
  expect(await list()).toEqual({ crypto: [first], fiat: [] });
  for (const gone of [
    await api.put(`${path}/crypto/${second.id}`, headers, { destination }),
    await api.delete(`${path}/crypto/${second.id}`, headers),
  ])
    expect(gone).toMatchObject({ status: 404, body: { code: "merchant_not_found" } });
});

test("an asset that is registered already is a conflict in any spelling, and no other entry is added", async () => {
  const { list, add, first } = await setUp();
  const upperCase = asset.replace(/0x.*/, (token) => `0x${token.slice(2).toUpperCase()}`);
  const answer = await add({ asset: other, destination }, { asset: upperCase, destination });
  expect(answer).toMatchObject({ status: 409, body: { code: "settlement_asset_conflict" } });
  expect(answer.body["message"]).toContain("settlements.1.asset");
  expect(await list()).toEqual({ crypto: [first], fiat: [] });
});

test("exactly one of many racing registrations of one asset succeeds", async () => {
  const { list, add } = await setUp();
  const answers = await Promise.all(Array.from({ length: 10 }, () => add({ asset: other, destination })));
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, ...Array(9).fill(409)]);
  expect((await list())["crypto"]).toHaveLength(2);
});

const ours = networksDocument.chains[0];
const checksummed = getAddress(`0x${"ab".repeat(20)}`);
test.each([
  ["on another chain", `eip155:1:0x${"d1".repeat(20)}`, "is on another chain than the asset"],
  ["with a wrong checksum", `${chain}:${checksummed.replace("A", "a")}`, "checksum is wrong"],
  ["that is the token", `${chain}:0x${"a1".repeat(20)}`, "is the token's own contract"],
  ["that is the treasury", `${chain}:${ours?.treasury.address}`, "is an account of the service itself"],
  [
    "that is a lane",
    `${chain}:${ours?.lanes[0]?.address.toUpperCase().replace("X", "x")}`,
    "is an account of the service",
  ],
  ["that is the batching contract", `${chain}:${ours?.multicall}`, "is an account of the service itself"],
  ["that is the zero address", `${chain}:0x${"0".repeat(40)}`, "is the zero address"],
  ["that is not an account", "0x12", "expected a CAIP-10 account"],
])("a destination %s is refused when it is registered and when it is changed", async (_what, to, reason) => {
  const { path, list, add, first, headers } = await setUp();
  await api.delete(`${path}/crypto/${first.id}`, headers);
  const registered = await add({ asset, destination: to });
  expect(registered).toMatchObject({ status: 400, body: { code: "params_validation" } });
  expect(registered.body["message"]).toContain("settlements.0.destination");
  expect(registered.body["message"]).toContain(reason);
  const added = (await add({ asset, destination: `${chain}:${checksummed}` })).body["settlements"] as [{ id: string }];
  const changed = await api.put(`${path}/crypto/${added[0].id}`, headers, { destination: to });
  expect(changed).toMatchObject({ status: 400, body: { message: expect.stringContaining(reason) } });
  expect(((await list()) as { crypto: { destination: string }[] }).crypto[0]?.destination).toBe(
    `${chain}:${checksummed}`,
  );
});

test.each([
  ["on a chain that has no number", `eip155:mainnet/erc20:0x${"a2".repeat(20)}`],
  ["that is the chain's own coin", `${chain}/slip44:60`],
  ["whose address is truncated", `${chain}/erc20:0x${"a2".repeat(19)}`],
  ["whose checksum is wrong", `${chain}/erc20:${checksummed.replace("A", "a")}`],
  ["that is not an asset", "USDC"],
])("an asset %s is refused with the member's name, and a valid one beside it is not added", async (_what, unsound) => {
  const { list, add, first } = await setUp();
  const to = `${unsound.split("/")[0]}:0x${"d1".repeat(20)}`;
  const answer = await add({ asset: other, destination }, { asset: unsound, destination: to });
  expect(answer).toMatchObject({ status: 400, body: { code: "params_validation" } });
  expect(answer.body["message"]).toContain("settlements.1.asset: ");
  expect(await list()).toEqual({ crypto: [first], fiat: [] });
});

test("an asset on a chain that the networks file lacks is accepted", async () => {
  const { add } = await setUp();
  const solana = "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp";
  const mint = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGkZwyTDt1v";
  const unknown = { asset: `eip155:8453/erc20:0x${"a1".repeat(20)}`, destination: `eip155:8453:0x${"d1".repeat(20)}` };
  const wallet = "9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM";
  const later = { asset: `${solana}/token:${mint}`, destination: `${solana}:${wallet}` };
  expect(await add(unknown, later)).toMatchObject({ status: 201, body: { settlements: [unknown, later] } });
});

test("one of two racing registrations of the same assets in opposite orders succeeds, and the other conflicts", async () => {
  const tokens = Array.from({ length: 50 }, (_, index) => `${chain}/erc20:0x${String(index + 10).repeat(20)}`);
  const entries = tokens.map((token) => ({ asset: token, destination }));
  for (let round = 0; round < 8; round += 1) {
    const { add } = await setUp();
    const answers = await Promise.all([add(...entries), add(...entries.toReversed())]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409]);
  }
});

test("racing additions, changes and deletions of destinations get consistent responses", async () => {
  const { path, list, add, headers } = await setUp();
  const [made] = (await add({ asset: other, destination })).body["settlements"] as [{ id: string }];
  const elsewhere = `${chain}:0x${"d2".repeat(20)}`;
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, index) =>
      index % 3 === 0
        ? add({ asset: other, destination })
        : index % 3 === 1
          ? api.put(`${path}/crypto/${made.id}`, headers, { destination: elsewhere })
          : api.delete(`${path}/crypto/${made.id}`, headers),
    ),
  );
  const deleted = answers.filter((_, index) => index % 3 === 2).map(({ status }) => status);
  expect(deleted.toSorted()).toEqual([200, 404, 404, 404]);
  const added = answers.filter(({ status }) => status === 201);
  expect(added.length).toBeLessThanOrEqual(1);
  expect(((await list()) as { crypto: object[] }).crypto).toHaveLength(1 + added.length);
  for (const { status } of answers) expect([200, 201, 404, 409]).toContain(status);
});

test.each([[[]], [Array.from({ length: 51 }, () => ({ asset, destination }))], [{}], [[{ asset }]]])(
  "settlements that are empty, too many or incomplete are refused: %j",
  async (settlements) => {
    const { path, headers } = await setUp();
    const answer = await api.post(`${path}/crypto`, { ...headers, ...fresh() }, { settlements });
    expect(answer).toMatchObject({ status: 400, body: { code: "params_validation" } });
    expect(answer.body["message"]).toContain("settlements");
  },
);
