import { type Hex, parseGwei } from "viem";
import { expect, test } from "vitest";
import { fundBuyer, mine, startChain, transfersTo } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

test("a transfer whose transaction is mined just before its replacement is broadcast is made once and takes no new nonce", async () => {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  // Blocks are slow, so that nothing is replaced before the clock is advanced.
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url], change: { blockMs: 10_000 } });
  const one = await fixture.sign(await fundBuyer(chain));
  await chain.client.setAutomine(false);
  await fixture.relay();
  const [first] = await fixture.transactions();
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("50") });
  await mine(chain);
  await fixture.watch();
  fixture.clock.advance(20_000);

  // A block takes the original while its replacement is on the way to the node. Anvil drops a transaction that was
  // replaced, so the test sends it again.
  const mineOriginal = async () => {
    await chain.client.dropTransaction({ hash: first?.hash as Hex });
    await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 1n });
    await mine(chain);
    await chain.client.sendRawTransaction({ serializedTransaction: `0x${first?.bytes.toString("hex")}` });
    await mine(chain);
  };
  let raced: Promise<void> | undefined;
  proxy.hold(({ method }) => {
    if (method !== "eth_sendRawTransaction" || raced) return undefined;
    raced = mineOriginal();
    return raced;
  });
  await fixture.watch();
  expect(raced).toBeDefined();
  const broadcasts = await fixture.transactions();
  expect(broadcasts.map(({ nonce, replacement }) => [nonce, replacement])).toEqual([
    [0, 0],
    [0, 1],
  ]);
  expect(fixture.lines.join("")).toContain('"outcome":"nonce_too_low"');

  for (let pass = 0; pass < 3; pass += 1) {
    await fixture.watch();
    await fixture.relay();
    await mine(chain);
    fixture.clock.advance(20_000);
  }
  expect(fixture.confirmed).toMatchObject([{ id: one.id, tx_hash: first?.hash as Hex }]);
  expect((await fixture.transactions()).map(({ nonce, state }) => [nonce, state])).toEqual([
    [0, "final"],
    [0, "replaced"],
  ]);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
  expect(await chain.client.getTransactionCount({ address: chain.keys.lanes[0]?.address as Hex })).toBe(1);
});
