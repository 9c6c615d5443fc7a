import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { fundBuyer, networksFor, sendUsdc, startChain, transfersTo, usdcBalance } from "../../support/evm-chain.ts";
import { execute } from "../../support/execute-sql.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { startPrivatePostgres, startPrivateRedis } from "../../support/private-services.ts";
import { redisPrefix } from "../../support/redis-prefix.ts";
import { createDatabase } from "../../support/test-database.ts";

describe("isolated resources", () => {
  test("a test database is a migrated copy that is isolated from other copies", async () => {
    const [one, other] = await Promise.all([createDatabase(), createDatabase()]);
    await execute(one, "create table only_here (id int)");
    const found = await execute(
      other,
      "select to_regclass('only_here') as only_here, to_regclass('payment') as payment",
    );
    expect(found).toEqual([{ only_here: null, payment: "payment" }]);
  });

  test("two Redis namespaces have different prefixes", () => {
    expect(redisPrefix().prefix).not.toBe(redisPrefix().prefix);
  });

  test("a test chain has Circle's token, funded lanes and buyers without gas", async () => {
    const chain = await startChain({ lanes: 2 });
    const buyer = await fundBuyer(chain, 5_000_000n);
    expect(await usdcBalance(chain, buyer.address)).toBe(5_000_000n);
    expect(await chain.client.getBalance({ address: buyer.address })).toBe(0n);
    const networks = await networksFor(chain);
    expect(networks.chains[0]?.lanes).toHaveLength(2);
    expect(networks.chains[0]?.assets[0]).toMatchObject({ domain: { name: "USD Coin", version: "2" } });
  });

  test("two test chains share no state", async () => {
    const [one, other] = await Promise.all([startChain(), startChain()]);
    const buyer = await fundBuyer(one);
    await sendUsdc(one, buyer, one.keys.treasury.address, 7n);
    expect(await transfersTo(one, one.keys.treasury.address)).toMatchObject([{ args: { value: 7n } }]);
    expect(await usdcBalance(other, buyer.address)).toBe(0n);
  });
});

describe("private services", () => {
  test("a private Redis restarts on its port with its stored data", async () => {
    const service = await startPrivateRedis();
    const redis = new Redis(service.url, { retryStrategy: () => 50 });
    redis.on("error", () => undefined);
    await redis.set("kept", "yes");
    await service.stop();
    expect(service.pid()).toBeUndefined();
    await service.start();
    expect(await redis.get("kept")).toBe("yes");
    redis.disconnect();
  });

  test("a killed private Postgres restarts on its port with its committed data", async () => {
    const service = await startPrivatePostgres();
    await execute(service.url, "create table kept (id int)", "insert into kept values (1)");
    await service.kill("SIGKILL");
    await service.start();
    expect(await execute(service.url, "select id from kept")).toEqual([{ id: 1 }]);
  });
});

describe("the fault proxy", () => {
  test("the fault proxy forwards calls and counts them", async () => {
    const { proxy, call } = await startProxiedChain();
    expect(await call("eth_chainId")).toMatchObject({ result: "0x7a69" });
    expect(proxy.calls).toEqual({ eth_chainId: 1 });
  });

  test("the fault proxy resets connections while it refuses and forwards calls again afterwards", async () => {
    const { proxy, call } = await startProxiedChain();
    proxy.refuse(true);
    await expect(call("eth_chainId")).rejects.toThrow();
    proxy.refuse(false);
    expect(await call("eth_chainId")).toMatchObject({ result: "0x7a69" });
  });

  test("the fault proxy runs a hook between the chain's answer and the caller's answer", async () => {
    const { chain, proxy, call } = await startProxiedChain();
    const seen: unknown[] = [];
    proxy.onAnswer(async (method, _params, answer) => {
      seen.push(method, answer.result, await chain.client.getBlockNumber());
    });
    const before = await chain.client.getBlockNumber();
    await call("evm_mine");
    expect(seen).toEqual(["evm_mine", expect.anything(), before + 1n]);
  });

  test("the fault proxy can drop an answer, or fail a call before it reaches the chain", async () => {
    const { chain, proxy, call } = await startProxiedChain();
    const before = await chain.client.getBlockNumber();
    proxy.dropAnswers(({ method }) => method === "evm_mine");
    await expect(call("evm_mine")).rejects.toThrow();
    expect(await chain.client.getBlockNumber()).toBe(before + 1n);
    proxy.fail(({ method }) => (method === "eth_gasPrice" ? { code: -32_000, message: "busy" } : undefined));
    expect(await call("eth_gasPrice")).toMatchObject({ error: { message: "busy" } });
  });
});

async function startProxiedChain() {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const call = async (method: string): Promise<unknown> => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [] });
    const headers = { "content-type": "application/json" };
    return (await fetch(proxy.url, { method: "POST", headers, body })).json();
  };
  return { chain, proxy, call };
}
