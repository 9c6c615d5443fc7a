import type { TypedDataDefinition } from "viem";
import { describe, expect, test } from "vitest";
import { listOptions } from "../../../payments/options.ts";
import { fundBuyer, startChain } from "../../support/chain.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { makeTill, walletActions } from "../../support/till.ts";

const chain = await startChain();
const proxy = await startFaultProxy({ target: chain.url });
const till = await makeTill(chain, { rpcUrls: [proxy.url] });
const rich = await fundBuyer(chain, 1_000_000n);
const poor = await fundBuyer(chain, 999_999n);

describe("options", () => {
  test("options list the accounts that can afford the payment, in the wallet's order", async () => {
    const other = await fundBuyer(chain);
    const options = await till.offer(await till.create(100n), poor, other, rich);
    expect(options.map(({ account }) => account)).toEqual([till.accountOf(other), till.accountOf(rich)]);
    expect(options[0]?.amount).toMatchObject({ unit: `caip19/${chain.asset}`, value: 1_000_000n });
  });

  test("listing options makes one chain call, whatever the number of accounts", async () => {
    const id = await till.create(100n);
    const before = proxy.calls.eth_call ?? 0;
    await till.offer(id, rich, poor, till.deps.networks.chains[0]?.lanes[0] as never);
    expect((proxy.calls.eth_call ?? 0) - before).toBe(1);
  });

  test("repeated and concurrent requests return the same options", async () => {
    const id = await till.create();
    const answers = await Promise.all(Array.from({ length: 8 }, () => till.offer(id, rich)));
    expect(new Set(answers.flat().map((option) => option.id)).size).toBe(1);
    const texts = answers.flat().map((option) => walletActions(option)[0]?.params[1]);
    expect(new Set(texts).size).toBe(1);
  });

  test("one account in two spellings gets one option, in its first spelling", async () => {
    const id = await till.create();
    const lower = { address: rich.address.toLowerCase() };
    const options = await till.offer(id, lower, rich);
    expect(options.map(({ account }) => account)).toEqual([till.accountOf(lower)]);
  });

  test("the treasury and accounts on unknown chains get no options", async () => {
    const id = await till.create();
    expect(await till.offer(id, chain.keys.treasury)).toEqual([]);
    const accounts = [`eip155:1:${rich.address}`, "cosmos:cosmoshub-3:cosmos1abc"];
    expect(await listOptions(till.deps, { paymentId: id, mode: "live", accounts })).toMatchObject({
      ok: true,
      value: { options: [] },
    });
  });

  test("a merchant without a destination offers no options", async () => {
    const bare = await makeTill(chain, { databaseUrl: till.databaseUrl });
    const paymentId = await bare.create();
    await bare.db.deleteFrom("settlement_destination").where("merchant_id", "=", bare.merchantId).execute();
    expect(await bare.offer(paymentId, rich)).toEqual([]);
  });

  test.each(["", "nonsense", "eip155:31337:0x12", `eip155:31337:${"0".repeat(42)}`])(
    "the malformed account %j is refused with its position",
    async (bad) => {
      const accounts = [till.accountOf(rich), bad];
      const answer = await listOptions(till.deps, { paymentId: await till.create(), mode: "live", accounts });
      expect(answer).toMatchObject({
        ok: false,
        code: "invalid_params",
        message: expect.stringContaining("accounts.1"),
      });
    },
  );

  test("all options of a payment share one nonce, and different payments have different nonces", async () => {
    const other = await fundBuyer(chain);
    const [one, two] = [await till.create(), await till.create()];
    const nonces = async (id: string) =>
      (await till.offer(id, rich, other)).map((option) => {
        const text = walletActions(option)[0]?.params[1] as string;
        return (JSON.parse(text) as TypedDataDefinition & { message: { nonce: string } }).message.nonce;
      });
    const [a, b] = [await nonces(one), await nonces(two)];
    expect(new Set(a).size).toBe(1);
    expect(new Set([...a, ...b]).size).toBe(2);
  });

  test("listing options fails while the chain is unreachable", async () => {
    const id = await till.create();
    proxy.refuse(true);
    await expect(till.offer(id, rich)).rejects.toMatchObject({ code: "rpc_unreachable" });
    proxy.refuse(false);
    expect(await till.offer(id, rich)).toHaveLength(1);
  });

  test("options are refused for a payment of another mode and for a payment past its deadline that has not expired yet", async () => {
    const paymentId = await till.create(100n, { expiresAt: new Date(till.deps.now().getTime() + 60_000) });
    const accounts = [till.accountOf(rich)];
    expect(await listOptions(till.deps, { paymentId, mode: "test", accounts })).toMatchObject({
      code: "payment_not_found",
    });
    till.clock.advance(60_000);
    expect(await listOptions(till.deps, { paymentId, mode: "live", accounts })).toMatchObject({
      code: "payment_expired",
    });
  });
});
