import { type Hex, parseGwei, parseTransaction } from "viem";
import { expect, test } from "vitest";
import { fundBuyers, mine, startChain, type TestChain, transfersTo } from "../../../support/evm-chain.ts";
import { type Call, startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

/** Longer than a lane waits before it broadcasts anything again. */
const LATER_MS = 5_000;
/** The endpoint refuses what offers more per gas. */
const MOST = parseGwei("60");

/** Mines a block with this base fee, which the next block keeps. */
async function mineAt(chain: TestChain, gwei: string): Promise<void> {
  for (let block = 0; block < 2; block += 1) {
    await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei(gwei) });
    await mine(chain);
  }
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei(gwei) });
}

/** A lane whose transaction waits in the pool under a base fee that rose, and whose replacement the endpoint refuses. */
async function refuseReplacement(message: string) {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url] });
  fixture.clock.stop();
  const offered: bigint[] = [];
  proxy.fail(({ method, params }: Call) => {
    if (method !== "eth_sendRawTransaction") return undefined;
    const { maxFeePerGas = 0n } = parseTransaction(params[0] as Hex);
    offered.push(maxFeePerGas);
    return maxFeePerGas > MOST ? { code: -32_000, message } : undefined;
  });
  const [buyer, other] = await fundBuyers(chain, 2);
  if (!buyer || !other) throw new Error("no buyer was made");
  await mineAt(chain, "20");
  await fixture.watch();
  await chain.client.setAutomine(false);
  const one = await fixture.sign(buyer);
  await fixture.relay();
  await mineAt(chain, "50");
  fixture.clock.advance(LATER_MS);
  await fixture.watch();
  await fixture.watch();
  const [first, ...more] = await fixture.transactions();
  expect([first, ...more].map((row) => row?.state)).toEqual(["accepted", "broadcast"]);
  return { chain, fixture, one, other, first: first?.hash as Hex, offered, accept: () => proxy.fail(undefined) };
}

test.each([
  "tx fee (1.21 ether) exceeds the configured cap (1.00 ether)",
  "insufficient funds for gas * price + value",
])(
  "the original of a replacement that is refused with '%s' is broadcast again once it can pay the base fee",
  async (message) => {
    const { chain, fixture, one, first, offered } = await refuseReplacement(message);
    await chain.client.dropTransaction({ hash: first });
    offered.length = 0;
    fixture.clock.advance(LATER_MS);
    await fixture.watch();
    expect(
      offered.every((fee) => fee > MOST),
      "it cannot pay the base fee yet",
    ).toBe(true);

    await mineAt(chain, "20");
    await fixture.watch();
    fixture.clock.advance(LATER_MS);
    await fixture.watch();
    await mine(chain);
    await fixture.watch();
    expect(fixture.confirmed).toMatchObject([{ id: one.id, tx_hash: first }]);
    expect((await fixture.transactions()).map(({ state }) => state)).toEqual(["final", "replaced"]);
    expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
  },
);

test("a lane sends more while the replacement of its accepted transaction is refused", async () => {
  const { chain, fixture, one, other, accept } = await refuseReplacement("insufficient funds for gas * price + value");
  const two = await fixture.sign(other);
  accept();
  await fixture.relay();
  expect((await fixture.transactions()).at(-1)).toMatchObject({ nonce: 1, state: "accepted" });
  fixture.clock.advance(LATER_MS);
  await fixture.watch();
  await mine(chain);
  await fixture.watch();
  expect(await fixture.statesOf([one.id, two.id])).toEqual(["confirmed", "confirmed"]);
});

test("bytes of a nonce whose transfers were unassigned are not broadcast again when later bytes of it are refused", async () => {
  const { chain, fixture, offered } = await refuseReplacement("nonce too high");
  await fixture.db.updateTable("transaction").set({ state: "replaced" }).where("replacement", "=", 0).execute();
  await mineAt(chain, "20");
  await fixture.watch();
  offered.length = 0;
  fixture.clock.advance(LATER_MS);
  await fixture.watch();
  expect(offered.length).toBeGreaterThan(0);
  expect(offered.every((fee) => fee > MOST)).toBe(true);
});
