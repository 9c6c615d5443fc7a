import { createServer } from "node:http";
import { type Hex, keccak256 } from "viem";
import { expect, test } from "vitest";
import { postJson } from "../../../../local/post-json.ts";
import { fundBuyer, mine, startChain, transfersTo } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { listen } from "../../../support/listen.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

const BLOCK_MS = 2_000;

/** Starts an endpoint that accepts transactions and passes none on. It answers every other call correctly. */
async function startSwallowing(target: string) {
  const swallowed: Hex[] = [];
  const server = createServer(async (request, response) => {
    const text = Buffer.concat(await request.toArray()).toString();
    const { id, method, params } = JSON.parse(text) as { id: number; method: string; params: Hex[] };
    response.writeHead(200, { "content-type": "application/json" });
    if (method !== "eth_sendRawTransaction") return response.end(await postJson(target, text));
    const [bytes = "0x"] = params;
    swallowed.push(bytes);
    return response.end(JSON.stringify({ jsonrpc: "2.0", id, result: keccak256(bytes) }));
  });
  return { url: await listen(server), swallowed };
}

test("a payment that the first endpoint accepts and passes to no node is made by the second one, at its first fee", async () => {
  const chain = await startChain();
  const swallowing = await startSwallowing(chain.url);
  const second = await startFaultProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, {
    rpcUrls: [swallowing.url, second.url],
    change: { blockMs: BLOCK_MS },
  });
  fixture.clock.stop();
  const one = await fixture.sign(await fundBuyer(chain));
  await fixture.watch();
  await fixture.relay();
  fixture.clock.advance(2 * BLOCK_MS);
  await mine(chain, 2);
  await fixture.watch();
  expect(second.calls["eth_sendRawTransaction"], "it is not late yet").toBeUndefined();

  fixture.clock.advance(BLOCK_MS);
  await mine(chain);
  await fixture.watch();
  expect(second.calls["eth_sendRawTransaction"]).toBe(1);
  expect(swallowing.swallowed).toHaveLength(2);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["confirmed"]);
  expect((await fixture.transactions()).map(({ replacement, state }) => [replacement, state])).toEqual([[0, "final"]]);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});

test("only the lowest nonce of a lane is broadcast to every endpoint", async () => {
  const chain = await startChain();
  const [first, second] = [await startFaultProxy({ target: chain.url }), await startFaultProxy({ target: chain.url })];
  const change = { blockMs: BLOCK_MS, batchGas: 200_000 };
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [first.url, second.url], change });
  fixture.clock.stop();
  const buyer = await fundBuyer(chain);
  await fixture.watch();
  await chain.client.setAutomine(false);
  for (let count = 0; count < 3; count += 1) await fixture.sign(buyer);
  await fixture.relay();
  expect((await fixture.transactions()).map(({ nonce, state }) => [nonce, state])).toEqual(
    [0, 1, 2].map((nonce) => [nonce, "accepted"]),
  );
  fixture.clock.advance(3 * BLOCK_MS);
  await fixture.watch();
  expect([first, second].map(({ calls }) => calls["eth_sendRawTransaction"])).toEqual([6, 1]);
});
