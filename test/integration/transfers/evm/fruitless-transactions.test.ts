import { expect, test } from "vitest";
import { fundBuyer, fundBuyers, sendUsdc, startChain, transfersTo } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

const ALL = 1_000_000n;
/** One minute in all. */
const PASSES = 15;
const PASS_MS = 4_000;

test("a payer whose money is gone whenever a transaction lands costs three transactions, and its transfer ends", async () => {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url] });
  const payer = await fundBuyer(chain, ALL);
  const friend = await fundBuyer(chain, 1n);
  const one = await fixture.sign(payer, ALL);
  // The money is there during simulation and gone when the transaction lands.
  let hasMoney = true;
  proxy.onAnswer(async (method) => {
    const leaves = method === "eth_call" && hasMoney;
    const returns = method === "eth_sendRawTransaction" && !hasMoney;
    if (leaves) await sendUsdc(chain, payer, friend.address, ALL);
    if (returns) await sendUsdc(chain, friend, payer.address, ALL);
    if (leaves || returns) hasMoney = !hasMoney;
  });

  for (let pass = 0; pass < PASSES; pass += 1) {
    await fixture.relay();
    await fixture.watch();
    fixture.clock.advance(PASS_MS);
  }
  const sent = await fixture.transactions();
  expect(sent.map((row) => row.reverted)).toEqual([true, true, true]);
  expect(await fixture.rowsOf([one.id])).toMatchObject([{ state: "ended", alone: true }]);
  expect(fixture.failed.map(({ id }) => id)).toEqual([one.id]);

  // Other transfers never wait for it.
  proxy.onAnswer(undefined);
  const others = (await fixture.signAll(await fundBuyers(chain, 3))).map(({ id }) => id);
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf(others)).toEqual(Array(3).fill("confirmed"));
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(3);
});
