import { type Hex, parseEther, parseGwei, parseTransaction } from "viem";
import { expect, test } from "vitest";
import { listChainStatuses } from "../../../../db/queries/gauges.ts";
import { evmTransfers } from "../../../../transfers/evm/evm-transfers.ts";
import { fundBuyer, fundBuyers, mine, startChain, type TestChain, transfersTo } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

const ONE_COIN = parseEther("1");
const POLYGON_FEES = { maxFeePerGas: String(parseGwei("1500")), priorityFeePerGas: String(parseGwei("30")) };
/** Longer than a lane waits before it broadcasts or replaces anything. */
const LATER_MS = 60_000;

/** A chain with Polygon's fees whose endpoints refuse what offers more than one coin, as Geth and Bor do by default. */
async function withFeeCap(fees: Record<string, string> = POLYGON_FEES) {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const offered: bigint[] = [];
  proxy.fail(({ method, params }) => {
    if (method !== "eth_sendRawTransaction") return undefined;
    const { gas = 0n, maxFeePerGas = 0n } = parseTransaction(params[0] as Hex);
    offered.push(gas * maxFeePerGas);
    const message = `tx fee (${Number(gas * maxFeePerGas) / 1e18} ether) exceeds the configured cap (1.00 ether)`;
    return gas * maxFeePerGas > ONE_COIN ? { code: -32_000, message } : undefined;
  });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url, `${proxy.url}/two`], change: { fees } });
  const [lane] = chain.keys.lanes;
  if (!lane) throw new Error("the chain has no lane");
  await chain.client.setBalance({ address: lane.address, value: parseEther("1000") });
  return { chain, fixture, offered };
}

async function mineAt(chain: TestChain, gwei: string): Promise<void> {
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei(gwei) });
  await mine(chain);
}

test("payments whose full batch no node would take are paid in several transactions, and those after them too", async () => {
  const { chain, fixture, offered } = await withFeeCap();
  const [late, ...buyers] = await fundBuyers(chain, 41);
  if (!late) throw new Error("no buyer was made");
  const ids = (await fixture.signAll(buyers)).map(({ id }) => id);
  await mineAt(chain, "100");
  await fixture.watch();
  for (let pass = 0; pass < 4; pass += 1) {
    await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("100") });
    await fixture.relay();
    await fixture.watch();
    fixture.clock.advance(LATER_MS);
  }
  ids.push((await fixture.sign(late)).id);
  await fixture.relay();
  await fixture.watch();
  expect(new Set(await fixture.statesOf(ids))).toEqual(new Set(["confirmed"]));
  expect(offered.every((offer) => offer <= ONE_COIN / 2n)).toBe(true);
  expect((await fixture.transactions()).length).toBeGreaterThan(2);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(41);
});

test("a replacement that cannot rise within the most that a transaction may offer waits for the base fee to fall", async () => {
  const { chain, fixture, offered } = await withFeeCap();
  const buyers = await fundBuyers(chain, 20);
  const ids = (await fixture.signAll(buyers)).map(({ id }) => id);
  await mineAt(chain, "100");
  await fixture.watch();
  await chain.client.setAutomine(false);
  await fixture.relay();
  for (let pass = 0; pass < 4; pass += 1) {
    await mineAt(chain, "1200");
    await fixture.watch();
    fixture.clock.advance(LATER_MS);
  }
  const replacements = (await fixture.transactions()).filter(({ replacement }) => replacement > 0);
  expect(replacements.length).toBeGreaterThan(0);
  expect(offered.every((offer) => offer <= ONE_COIN)).toBe(true);
  const isOpen = async () => (await fixture.statesOf(ids)).some((state) => state !== "confirmed");
  for (let pass = 0; pass < 12 && (await isOpen()); pass += 1) {
    await mineAt(chain, "100");
    await fixture.watch();
    fixture.clock.advance(LATER_MS);
    await fixture.relay();
  }
  expect(new Set(await fixture.statesOf(ids))).toEqual(new Set(["confirmed"]));
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(20);
});

test("a lane counts as held while one transfer alone would offer more than a transaction may", async () => {
  const gas = 190_000n;
  const chain = await startChain();
  const fees = { ...POLYGON_FEES, maxTransactionFee: String(gas * parseGwei("100")) };
  const fixture = await makeTransfersFixture(chain, { change: { fees } });
  const { id } = await fixture.sign(await fundBuyer(chain));
  const [lane] = chain.keys.lanes;
  const idle = { chain: chain.id, address: lane?.address.toLowerCase() ?? "", next_nonce: 0 };
  const none = { in_flight: 0, oldest_at: null, newest_max_fee: null, lowest_max_fee: null, lowest_priority_fee: null };
  const isHeldAt = async (gwei: string) => {
    await mineAt(chain, gwei);
    await fixture.watch();
    const [status] = await listChainStatuses(fixture.db, fixture.deps.now());
    return evmTransfers(fixture.evm).isLaneHeld({ ...idle, ...none }, status);
  };
  // With the tip of 30 gwei, the price is a gwei above the limit, and then a gwei below it.
  expect(await isHeldAt("71"), "the gauge of the alert").toBe(true);
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("71") });
  await fixture.relay();
  expect(await fixture.statesOf([id])).toEqual(["ready"]);
  expect(await isHeldAt("69")).toBe(false);
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf([id])).toEqual(["confirmed"]);
});
