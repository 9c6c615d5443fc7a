import { getAddress } from "viem";
import { expect, test } from "vitest";
import { asset, makeMerchant, makePayment, startApi } from "../start-api.ts";

const api = await startApi();
const merchant = await makeMerchant(api);
const lower = `0x${"ab".repeat(20)}` as const;
const checksummed = getAddress(lower);
const elsewhere = [
  "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp:7S3P4HxJpyyigGzodYwHtCxZyUQe9JiBMHyRWXArAaKv",
  "cosmos:cosmoshub-3:cosmos1t2uflqwqe0fsj0shcfkrvpukewcw40yjj6hdc0",
  "bip122:000000000019d6689c085ae165831e93:128Lkh3S7CkDTBZ8W7BbpsN3YYizJMp8p6",
  `eip155:1:${lower}`,
  "eip155:324:account.on.another.chain",
];

type Option = { id: string; account: string; actions: [{ data: { chain_id: string; params: [string, string] } }] };

async function ask(body: object, query = "") {
  const id = await makePayment(api, merchant);
  const answer = await api.post(`/v1/gateway/payment/${id}/options${query}`, merchant.wallet, body);
  return { id, ...answer, options: (answer.body["options"] ?? []) as Option[] };
}

test("accounts on unknown chains are ignored, whatever their form", async () => {
  const { status, options } = await ask({ accounts: [...elsewhere, `eip155:31337:${checksummed}`] });
  expect(status).toBe(200);
  expect(options.map(({ account }) => account)).toEqual([`eip155:31337:${checksummed}`]);
  expect((await ask({ accounts: elsewhere })).options).toEqual([]);
});

test("an address may be checksummed or not: the wallet gets it back as written and signs the same", async () => {
  const typed = [];
  for (const address of [lower, checksummed]) {
    const { options } = await ask({ accounts: [`eip155:31337:${address}`] });
    expect(options).toMatchObject([
      { account: `eip155:31337:${address}`, amount: { unit: `caip19/${asset}` }, actions: [{ type: "walletRpc" }] },
    ]);
    const [account, json = ""] = options[0]?.actions[0].data.params ?? [];
    expect(account).toBe(address);
    typed.push(JSON.parse(json));
  }
  expect(typed.map(({ message }) => message.from)).toEqual([checksummed, checksummed]);
});

test("five hundred accounts are accepted, a repeated one counts once, and accounts on unknown chains do not count", async () => {
  const accounts = Array.from({ length: 500 }, (_, index) => `eip155:31337:0x${String(index + 1).padStart(40, "0")}`);
  const others = Array.from({ length: 20 }, (_, index) => `eip155:1:0x${String(index + 1).padStart(40, "0")}`);
  const { options } = await ask({ accounts: [...others, ...accounts, ...accounts.slice(0, 10)] });
  expect(options.map(({ account }) => account)).toEqual(accounts);
});

test("a text that is no account is skipped, and the others get their options", async () => {
  const malformed = [`0x${"cc".repeat(20)}`, "eip155:31337:0xabc", "", "eip155:31337:0xab\0", "x".repeat(10_000)];
  const { status, options } = await ask({ accounts: [...malformed, `eip155:31337:${lower}`] });
  expect(status).toBe(200);
  expect(options.map(({ account }) => account)).toEqual([`eip155:31337:${lower}`]);
});

test("the options include the payment only when the caller asks for it", async () => {
  const accounts = [`eip155:31337:${lower}`];
  const withPayment = await ask({ accounts }, "?includePaymentInfo=true");
  expect(withPayment.body["info"]).toMatchObject({
    paymentId: withPayment.id,
    status: "requires_action",
    merchant: { name: "Shop" },
  });
  expect((await ask({ accounts }, "?includePaymentInfo=false")).body).not.toHaveProperty("info");
  expect((await ask({ accounts })).body).not.toHaveProperty("info");
});

test.each([null, [], ["opt_1"], "all", { a: 1 }])("a refresh of %j changes nothing", async (refresh) => {
  const { status, options } = await ask({ accounts: [`eip155:31337:${lower}`], refresh });
  expect([status, options.length]).toEqual([200, 1]);
});

test("fetch with empty data returns all actions of an option, and any other data is refused", async () => {
  const { id, options } = await ask({ accounts: [`eip155:31337:${lower}`] });
  const fetch = (data: string) =>
    api.post(`/v1/gateway/payment/${id}/fetch`, merchant.wallet, { optionId: options[0]?.id, data });
  expect(await fetch("")).toMatchObject({ status: 200, body: { actions: options[0]?.actions } });
  expect(await fetch("0x7b7d")).toMatchObject({
    status: 400,
    body: { code: "invalid_params", message: "data: is not a build action of this option" },
  });
});
