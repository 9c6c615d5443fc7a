import type { TypedDataDefinition } from "viem";
import { describe, expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { listOptions } from "../../../../payments/options/list-options.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeMerchantFixture, walletActions } from "../../../support/merchant-fixture.ts";

const chain = await startChain();
const proxy = await startFaultProxy({ target: chain.url });
const fixture = await makeMerchantFixture(chain, { rpcUrls: [proxy.url] });
const rich = await fundBuyer(chain, 1_000_000n);
const poor = await fundBuyer(chain, 999_999n);

describe("options", () => {
  test("options list the accounts that can afford the payment, in the wallet's order", async () => {
    const other = await fundBuyer(chain);
    const options = await fixture.offer(await fixture.create(100n), poor, other, rich);
    expect(options.map(({ account }) => account)).toEqual([fixture.accountOf(other), fixture.accountOf(rich)]);
    expect(options[0]?.amount).toMatchObject({ unit: `caip19/${chain.asset}`, value: 1_000_000n });
  });

  test("listing options makes one chain call, whatever the number of accounts", async () => {
    const id = await fixture.create(100n);
    const before = proxy.calls["eth_call"] ?? 0;
    await fixture.offer(id, rich, poor, fixture.deps.networks.chains[0]?.lanes[0] as never);
    expect((proxy.calls["eth_call"] ?? 0) - before).toBe(1);
  });

  test("more than 250 accounts are read in several calls, and the last account is read too", async () => {
    const id = await fixture.create(100n);
    const others = Array.from({ length: 298 }, (_, index) => ({
      address: `0x${String(index + 1).padStart(40, "0")}` as const,
    }));
    const last = await fundBuyer(chain);
    const before = proxy.calls["eth_call"] ?? 0;
    const options = await fixture.offer(id, rich, ...others, last);
    expect(options.map(({ account }) => account)).toEqual([fixture.accountOf(rich), fixture.accountOf(last)]);
    expect((proxy.calls["eth_call"] ?? 0) - before).toBe(2);
  });

  test("repeated and concurrent requests return the same options", async () => {
    const id = await fixture.create();
    const answers = await Promise.all(Array.from({ length: 8 }, () => fixture.offer(id, rich)));
    expect(new Set(answers.flat().map((option) => option.id)).size).toBe(1);
    const texts = answers.flat().map((option) => walletActions(option)[0]?.params[1]);
    expect(new Set(texts).size).toBe(1);
  });

  test("one account in two spellings gets one option, in its first spelling", async () => {
    const id = await fixture.create();
    const lower = { address: rich.address.toLowerCase() };
    const options = await fixture.offer(id, lower, rich);
    expect(options.map(({ account }) => account)).toEqual([fixture.accountOf(lower)]);
  });

  test("the treasury and accounts on unknown chains get no options", async () => {
    const id = await fixture.create();
    expect(await fixture.offer(id, chain.keys.treasury)).toEqual([]);
    const accounts = [`eip155:1:${rich.address}`, "cosmos:cosmoshub-3:cosmos1abc"];
    expect(await listOptions(fixture.deps, { paymentId: id, mode: "live", accounts })).toMatchObject({
      ok: true,
      value: { options: [] },
    });
  });

  test("a merchant without a destination offers no options", async () => {
    const bare = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl });
    const paymentId = await bare.create();
    await bare.db.deleteFrom("settlement_destination").where("merchant_id", "=", bare.merchantId).execute();
    expect(await bare.offer(paymentId, rich)).toEqual([]);
  });

  test.each(["", "nonsense", "eip155:31337:0x12", `eip155:31337:${"0".repeat(42)}`])(
    "the malformed account %j is skipped beside another one, and refused alone",
    async (bad) => {
      const paymentId = await fixture.create();
      const list = (accounts: string[]) => listOptions(fixture.deps, { paymentId, mode: "live", accounts });
      expect(await list([bad, fixture.accountOf(rich)])).toMatchObject({
        ok: true,
        value: { options: [{ account: fixture.accountOf(rich) }] },
      });
      expect(await list([bad])).toMatchObject({ ok: false, code: "invalid_params" });
    },
  );

  test("what a caller sends instead of an account stays out of the log", async () => {
    const paymentId = await fixture.create();
    const secret = newKey().privateKey;
    const accounts = [secret, fixture.accountOf(rich)];
    const before = fixture.lines.length;
    expect(await listOptions(fixture.deps, { paymentId, mode: "live", accounts })).toMatchObject({ ok: true });
    const text = fixture.lines.slice(before).join("\n");
    expect(text).toContain("malformed accounts skipped");
    expect(text).not.toContain(secret.slice(2, 20));
  });

  test("all options of a payment share one nonce, and different payments have different nonces", async () => {
    const other = await fundBuyer(chain);
    const [one, two] = [await fixture.create(), await fixture.create()];
    const nonces = async (id: string) =>
      (await fixture.offer(id, rich, other)).map((option) => {
        const text = walletActions(option)[0]?.params[1] as string;
        return (JSON.parse(text) as TypedDataDefinition & { message: { nonce: string } }).message.nonce;
      });
    const [a, b] = [await nonces(one), await nonces(two)];
    expect(new Set(a).size).toBe(1);
    expect(new Set([...a, ...b]).size).toBe(2);
  });

  test("listing options fails while the chain is unreachable", async () => {
    const id = await fixture.create();
    proxy.refuse(true);
    await expect(fixture.offer(id, rich)).rejects.toMatchObject({ code: "rpc_unreachable" });
    proxy.refuse(false);
    expect(await fixture.offer(id, rich)).toHaveLength(1);
  });

  test("options are refused for a payment of another mode and for a payment past its deadline that has not expired yet", async () => {
    const paymentId = await fixture.create(100n, { expiresAt: new Date(fixture.deps.now().getTime() + 60_000) });
    const accounts = [fixture.accountOf(rich)];
    expect(await listOptions(fixture.deps, { paymentId, mode: "test", accounts })).toMatchObject({
      code: "payment_not_found",
    });
    fixture.clock.advance(60_000);
    expect(await listOptions(fixture.deps, { paymentId, mode: "live", accounts })).toMatchObject({
      code: "payment_expired",
    });
  });
});
