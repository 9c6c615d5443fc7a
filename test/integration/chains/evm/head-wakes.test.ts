import { Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { createHeadWakes } from "../../../../chains/evm/head-wakes.ts";
import { closeChains } from "../../../../chains/open-chains.ts";
import { freePort } from "../../../../local/free-ports.ts";
import { createMetrics } from "../../../../runtime/metrics.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { fundBuyer, mine, networksFor, startChain, type TestChain } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";
import { waitFor } from "../../../support/wait-for.ts";

/** Longer than any test: a wait that ends before was ended by an announcement. */
const LONG_MS = 50_000;
const never = new AbortController().signal;

/** A message of a `newHeads` subscription. */
const announce = (height: number) =>
  JSON.stringify({
    jsonrpc: "2.0",
    method: "eth_subscription",
    params: { subscription: "0x1", result: { number: `0x${height.toString(16)}` } },
  });

/** Starts a WebSocket server that runs `serve` for each connection that has subscribed. */
async function startSocket(serve: (socket: WebSocket) => void) {
  const port = await freePort();
  const server = new WebSocketServer({ port, host: "127.0.0.1" });
  const sockets: WebSocket[] = [];
  server.on("connection", (socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.once("message", () => serve(socket));
  });
  addCleanup(async () => {
    for (const socket of sockets) socket.terminate();
    server.close();
  });
  return { url: `ws://127.0.0.1:${port}`, sockets };
}

/** Opens the wakes of a chain whose endpoint announces blocks at a WebSocket. */
async function openWakes(chain: TestChain, wsUrl: string) {
  const rpc = [{ name: "one", url: chain.url, wsUrl }];
  const [network] = (await networksFor(chain, { change: { rpc, pollMs: LONG_MS } })).chains;
  if (network?.chain.startsWith("eip155:") !== true) throw new Error("not an EVM network");
  const heads = createHeadWakes(
    network as Parameters<typeof createHeadWakes>[0],
    createMetrics(new Registry(), "worker"),
  );
  addCleanup(async () => heads.close());
  return heads;
}

describe("announcements of new blocks", () => {
  test("Anvil's announcement of a block ends the wait for it, and for no later block", async () => {
    const chain = await startChain();
    const heads = await openWakes(chain, chain.url.replace("http", "ws"));
    const height = Number(await chain.client.getBlockNumber());
    // The subscription may begin after the first blocks.
    const mining = setInterval(() => void mine(chain), 200);
    expect(await heads.wait({ height: height + 1, ms: LONG_MS, signal: never })).toBe(true);
    clearInterval(mining);
    expect(await heads.wait({ height: height + 1_000_000, ms: 100, signal: never })).toBe(false);
  });

  test("a wait lasts as long as it would without announcements when the socket is silent, closed or brings anything else", async () => {
    const chain = await startChain();
    const silent = await startSocket(() => undefined);
    const closing = await startSocket((socket) => socket.close());
    const garbage = await startSocket((socket) => {
      for (const text of ["", "{", "null", '{"method":"eth_subscription"}', announce(-1), `"${"x".repeat(100_000)}"`])
        socket.send(text);
    });
    for (const url of [silent.url, closing.url, garbage.url, `ws://127.0.0.1:${await freePort()}`]) {
      const heads = await openWakes(chain, url);
      for (let round = 0; round < 3; round += 1)
        expect(await heads.wait({ height: 1, ms: 50, signal: never })).toBe(false);
    }
  });

  test("an endpoint that announces blocks that do not exist ends four waits, and true announcements are not limited", async () => {
    const chain = await startChain();
    const liar = await startSocket((socket) => {
      socket.send(announce(1_000_000));
      socket.on("message", () => socket.send(announce(1_000_000)));
    });
    const heads = await openWakes(chain, liar.url);
    const waitOnce = async (ms = LONG_MS) => {
      const waiting = heads.wait({ height: 1, ms, signal: never });
      await waitFor(() => liar.sockets.length > 0, { within: 20_000 });
      liar.sockets[0]?.send(announce(1_000_000));
      return waiting;
    };
    expect(await waitOnce()).toBe(true);
    for (let round = 0; round < 10; round += 1) {
      heads.confirm();
      expect(await waitOnce()).toBe(true);
    }
    heads.confirm();
    const ended = [];
    for (let round = 0; round < 8; round += 1) ended.push(await waitOnce(round < 4 ? LONG_MS : 500));
    expect(ended).toEqual([true, true, true, true, false, false, false, false]);
  });

  test("a chain that announces a thousand blocks in a second stays subscribed", async () => {
    const chain = await startChain();
    const fast = await startSocket((socket) => {
      for (let height = 1; height <= 1_000; height += 1) socket.send(announce(1_000_000 + height));
    });
    const heads = await openWakes(chain, fast.url);
    expect(await heads.wait({ height: 1_001_000, ms: LONG_MS, signal: never })).toBe(true);
    heads.confirm();
    const next = heads.wait({ height: 1_001_001, ms: LONG_MS, signal: never });
    fast.sockets[0]?.send(announce(1_001_001));
    expect(await next).toBe(true);
  });

  test.each([
    ["floods", 5_000, ""],
    ["brings too much text", 150, " ".repeat(60_000)],
  ])("a socket that %s is closed and is not opened again at once", async (_what, messages, filling) => {
    const chain = await startChain();
    let sent = 0;
    const flood = await startSocket((socket) => {
      const send = () => {
        for (let count = 0; count < messages && socket.readyState === socket.OPEN; count += 1, sent += 1)
          socket.send(announce(1_000_000 + sent) + filling);
        if (socket.readyState === socket.OPEN) setTimeout(send, 50);
      };
      send();
    });
    const heads = await openWakes(chain, flood.url);
    void heads.wait({ height: 1, ms: 100, signal: never });
    await waitFor(() => flood.sockets[0]?.readyState === 3, { within: 30_000 });
    await heads.wait({ height: 1, ms: 2_000, signal: never });
    await heads.wait({ height: 1, ms: 2_000, signal: never });
    expect(flood.sockets).toHaveLength(1);
  });

  test("after a disconnection the endpoint is subscribed to again", async () => {
    const chain = await startChain();
    let connections = 0;
    const server = await startSocket((socket) => {
      connections += 1;
      if (connections === 1) socket.terminate();
      else socket.send(announce(7));
    });
    const heads = await openWakes(chain, server.url);
    expect(await heads.wait({ height: 7, ms: LONG_MS, signal: never })).toBe(true);
    expect(connections).toBe(2);
  });
});

describe("the watcher of a chain whose endpoint announces blocks", () => {
  test("announcements that lie cost a few calls and delay no transfer", async () => {
    const chain = await startChain();
    const proxy = await startFaultProxy({ target: chain.url });
    const liar = await startSocket((socket) => {
      const lying = setInterval(() => socket.send(announce(1_000_000)), 10);
      socket.on("close", () => clearInterval(lying));
    });
    const rpc = [{ name: "one", url: proxy.url, wsUrl: liar.url }];
    const fixture = await makeTransfersFixture(chain, { change: { rpc, pollMs: 250 } });
    addCleanup(async () => closeChains(fixture.deps.chains));
    const one = await fixture.sign(await fundBuyer(chain));
    await fixture.relay();
    const asked = () => (proxy.calls["eth_blockNumber"] ?? 0) + (proxy.calls["eth_getBlockByNumber"] ?? 0);
    const before = asked();
    await fixture.watchOn();
    expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
    // A pass of 1.5 s polls seven times. Four lies cost a call each, and then one per poll. A few more calls read blocks. The 150 lies
    // would cost as many.
    expect(asked() - before).toBeLessThanOrEqual(2 * 7 + 4 + 12);
  });

  test("blocks that are announced are read without a question for the height", async () => {
    const chain = await startChain();
    const proxy = await startFaultProxy({ target: chain.url });
    const rpc = [{ name: "one", url: proxy.url, wsUrl: chain.url.replace("http", "ws") }];
    const fixture = await makeTransfersFixture(chain, { change: { rpc, pollMs: LONG_MS } });
    addCleanup(async () => closeChains(fixture.deps.chains));
    await fixture.watchOn();
    const blocks = () => proxy.calls["eth_getBlockByNumber"] ?? 0;
    const before = proxy.calls["eth_blockNumber"] ?? 0;
    let isOver = false;
    const pass = fixture.watchOn().finally(() => {
      isOver = true;
    });
    await waitFor(() => (proxy.calls["eth_blockNumber"] ?? 0) > before, { within: 10_000 });
    for (let round = 0; round < 5; round += 1) {
      const read = blocks();
      await mine(chain, 1);
      await waitFor(() => isOver || blocks() > read, { within: 10_000 });
    }
    await pass;
    // One question when the pass begins, perhaps one more before the first wait, and one at its end.
    expect((proxy.calls["eth_blockNumber"] ?? 0) - before).toBeLessThanOrEqual(3);
  });
});
