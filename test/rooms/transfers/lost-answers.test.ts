import { expect, test } from "vitest";
import { makeCarrier } from "../../support/carry.ts";
import { fundBuyer, startChain, transfersTo } from "../../support/chain.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { waitFor } from "../../support/wait-for.ts";

const isSend = ({ method }: { method: string }) => method === "eth_sendRawTransaction";

async function proxied() {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const carrier = await makeCarrier(chain, { rpcUrls: [proxy.url] });
  const one = await carrier.sign(await fundBuyer(chain));
  return { chain, proxy, carrier, one };
}

test("a broadcast whose response is lost is never sent under another nonce, and the transfer happens once", async () => {
  const { chain, proxy, carrier, one } = await proxied();
  proxy.dropAnswers(isSend);
  await carrier.relay();
  expect((await carrier.transactions()).map((row) => row.state)).toEqual(["offered"]);
  proxy.dropAnswers(undefined);
  await carrier.relay();
  await carrier.watch();
  await carrier.relay();
  await carrier.watch();
  expect(await carrier.statesOf([one.id])).toEqual(["confirmed"]);
  expect(carrier.confirmed).toHaveLength(1);
  expect((await carrier.transactions()).map((row) => [row.nonce, row.state])).toEqual([[0, "final"]]);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});

test("a lane sends nothing new while its last broadcast is unanswered", async () => {
  const { chain, proxy, carrier } = await proxied();
  proxy.fail((call) => (isSend(call) ? { code: -32_000, message: "txpool is full" } : undefined));
  await carrier.relay();
  const more = await carrier.sign(await fundBuyer(chain));
  await carrier.relay();
  expect(await carrier.transactions()).toHaveLength(1);
  expect(await carrier.statesOf([more.id])).toEqual(["ready"]);
});

test("a broadcast that the node refuses is repeated from the stored bytes, under the same hash", async () => {
  const { chain, proxy, carrier, one } = await proxied();
  proxy.fail((call) => (isSend(call) ? { code: -32_000, message: "internal error" } : undefined));
  await carrier.relay();
  const [before] = await carrier.transactions();
  expect(before?.state).toBe("offered");
  await carrier.watch();
  expect(proxy.calls.eth_sendRawTransaction, "a recent refusal is not retried yet").toBe(1);

  carrier.clock.advance(10_000);
  await carrier.watch();
  expect(proxy.calls.eth_sendRawTransaction).toBe(2);
  proxy.fail(undefined);
  carrier.clock.advance(10_000);
  await carrier.watch();
  await carrier.watch();
  const transactions = await carrier.transactions();
  expect(transactions.map(({ hash, nonce, state }) => ({ hash, nonce, state }))).toEqual([
    { hash: before?.hash, nonce: 0, state: "final" },
  ]);
  expect(carrier.confirmed).toMatchObject([{ id: one.id, tx_hash: before?.hash }]);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});

test("nothing is lost while every connection is refused, and the work resumes where it stopped", async () => {
  const { chain, proxy, carrier, one } = await proxied();
  proxy.refuse(true);
  await expect(carrier.relay()).rejects.toMatchObject({ code: "rpc_unreachable", transient: true });
  expect(await carrier.statesOf([one.id])).toEqual(["ready"]);
  expect(await carrier.lane()).toMatchObject({ owner: null, lease_until: null, next_nonce: 0 });
  await expect(carrier.watch()).rejects.toMatchObject({ code: "rpc_unreachable" });
  proxy.refuse(false);
  await carrier.relay();
  await carrier.watch();
  expect(await carrier.statesOf([one.id])).toEqual(["confirmed"]);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});

test("bytes that a worker stored and did not send before it died are sent by another worker's watcher", async () => {
  const { chain, proxy, carrier, one } = await proxied();
  const other = await makeCarrier(chain, { databaseUrl: carrier.databaseUrl });
  // The first process hangs between storing and sending, as if it had died.
  proxy.delay(600_000, isSend);
  void carrier.relay().catch(() => undefined);
  await waitFor(async () => (await other.transactions()).length === 1, { within: 10_000 });
  expect(await other.transactions()).toMatchObject([{ state: "signed", offered_at: null }]);
  other.clock.advance(2_000);
  await other.watch();
  await other.watch();
  expect(await other.statesOf([one.id])).toEqual(["confirmed"]);
  expect(await other.transactions()).toHaveLength(1);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});

test("a lane skips an unavailable endpoint and uses the next one", async () => {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const carrier = await makeCarrier(chain, { rpcUrls: [proxy.url, chain.url] });
  proxy.refuse(true);
  const one = await carrier.sign(await fundBuyer(chain));
  await carrier.relay();
  await carrier.watch();
  expect(await carrier.statesOf([one.id])).toEqual(["confirmed"]);
  // The unavailable endpoint is not called again each time.
  const asked = Object.values(proxy.calls).reduce((sum, count) => sum + count, 0);
  await carrier.watch();
  expect(Object.values(proxy.calls).reduce((sum, count) => sum + count, 0)).toBe(asked);
});
