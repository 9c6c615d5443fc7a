import { type Hex, parseGwei, parseTransaction } from "viem";
import { expect, test } from "vitest";
import { fundBuyer, mine, startChain, type TestChain, transfersTo } from "../../../support/evm-chain.ts";
import { type Call, startFaultProxy } from "../../../support/fault-proxy.ts";
import { type MerchantFixture, makeMerchantFixture } from "../../../support/merchant-fixture.ts";

const CEILING = parseGwei("200");
const MINIMUM = parseGwei("1.2");
const slow = { blockMs: 1_000 };
/** A refused transaction is replaced when this has passed since it was signed. */
const WAIT_MS = 3_000;
/** A refused transaction is broadcast again after this. */
const RETRY_MS = 1_600;

const isSend = ({ method }: Call) => method === "eth_sendRawTransaction";
/** A node whose minimum tip is above the tip of the networks file. */
function refuseLowTips(call: Call): { code: number; message: string } | undefined {
  const tip = isSend(call) ? parseTransaction(call.params[0] as Hex).maxPriorityFeePerGas : undefined;
  if (tip === undefined || tip >= MINIMUM) return undefined;
  return { code: -32_000, message: `transaction underpriced: gas tip cap ${tip}, minimum needed ${MINIMUM}` };
}

/** A verified payment on a chain with these endpoints. The clock moves only when the test advances it. */
async function verified(chain: TestChain, rpcUrls: string[]) {
  const fixture = await makeMerchantFixture(chain, { rpcUrls, change: slow });
  fixture.clock.stop();
  const paymentId = await fixture.create();
  await fixture.verify(await fixture.attempt(paymentId, await fundBuyer(chain)));
  await fixture.watch();
  return { fixture, paymentId };
}

const transactionsOf = (fixture: MerchantFixture) =>
  fixture.db.selectFrom("transaction").selectAll().orderBy("nonce").orderBy("replacement").execute();

/** Expects one payment, made by the last replacement of one nonce, none of which offers more than the ceiling. */
async function expectPaidByReplacement(chain: TestChain, fixture: MerchantFixture, paymentId: string): Promise<void> {
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  const transactions = await transactionsOf(fixture);
  expect(new Set(transactions.map(({ nonce }) => nonce))).toEqual(new Set([0]));
  expect(transactions.length).toBeGreaterThan(1);
  expect(transactions.at(-1)?.state).toBe("final");
  for (const { max_fee_per_gas: offered } of transactions) expect(offered).toBeLessThanOrEqual(CEILING);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
}

test("a payment whose bytes every node refuses for their tip succeeds by a replacement below the ceiling", async () => {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  proxy.fail(refuseLowTips);
  const { fixture, paymentId } = await verified(chain, [proxy.url]);
  await fixture.relay();
  expect((await transactionsOf(fixture)).map(({ state }) => state)).toEqual(["broadcast"]);

  // A minimum that is raised for a moment costs nothing: the same bytes are broadcast first.
  fixture.clock.advance(RETRY_MS);
  await fixture.watch();
  expect(proxy.calls["eth_sendRawTransaction"]).toBe(2);
  expect(await transactionsOf(fixture)).toHaveLength(1);

  for (let pass = 0; pass < 6 && (await fixture.status(paymentId)).state !== "succeeded"; pass += 1) {
    fixture.clock.advance(WAIT_MS);
    await fixture.watch();
    await fixture.watch();
  }
  await expectPaidByReplacement(chain, fixture, paymentId);
});

test("a transaction that was accepted, evicted for its tip and then refused is replaced", async () => {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const { fixture, paymentId } = await verified(chain, [proxy.url]);
  await chain.client.setAutomine(false);
  await fixture.relay();
  const [first] = await transactionsOf(fixture);
  expect(first?.state).toBe("accepted");
  await chain.client.dropTransaction({ hash: first?.hash as Hex });
  proxy.fail(refuseLowTips);
  for (let pass = 0; pass < 6 && (await fixture.status(paymentId)).state !== "succeeded"; pass += 1) {
    fixture.clock.advance(WAIT_MS);
    await fixture.watch();
    await mine(chain);
    await fixture.watch();
  }
  await expectPaidByReplacement(chain, fixture, paymentId);
});

test.each(["txpool is full", "insufficient funds for gas * price + value", "nonce too high"])(
  "a transaction that the first endpoint refuses with '%s' is broadcast to the second one, and not replaced",
  async (message) => {
    const chain = await startChain();
    const [first, second] = [
      await startFaultProxy({ target: chain.url }),
      await startFaultProxy({ target: chain.url }),
    ];
    const { fixture, paymentId } = await verified(chain, [first.url, second.url]);
    first.fail((call) => (isSend(call) ? { code: -32_000, message } : undefined));
    await chain.client.setAutomine(false);
    await fixture.relay();
    expect((await transactionsOf(fixture)).map(({ state }) => state)).toEqual(["accepted"]);
    expect([first.calls, second.calls].map((calls) => calls["eth_sendRawTransaction"])).toEqual([1, 1]);
    await mine(chain);
    await fixture.watch();
    expect((await fixture.status(paymentId)).state).toBe("succeeded");
    expect((await transactionsOf(fixture)).map(({ state }) => state)).toEqual(["final"]);
  },
);

test("a transaction that the first endpoint accepts is broadcast to no other one", async () => {
  const chain = await startChain();
  const [first, second] = [await startFaultProxy({ target: chain.url }), await startFaultProxy({ target: chain.url })];
  const { fixture } = await verified(chain, [first.url, second.url]);
  await fixture.relay();
  expect([first.calls, second.calls].map((calls) => calls["eth_sendRawTransaction"])).toEqual([1, undefined]);
});
