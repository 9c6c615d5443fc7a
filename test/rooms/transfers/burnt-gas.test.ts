import { expect, test } from "vitest";
import { makeCarrier } from "../../support/carry.ts";
import { fundBuyer, fundBuyers, sendUsdc, startChain, transfersTo } from "../../support/chain.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";

const ALL = 1_000_000n;
/** One minute in all. */
const PASSES = 15;
const PASS_MS = 4_000;

test("a payer whose money is gone whenever a transaction lands costs three transactions, and its transfer ends", async () => {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const carrier = await makeCarrier(chain, { rpcUrls: [proxy.url] });
  const payer = await fundBuyer(chain, ALL);
  const friend = await fundBuyer(chain, 1n);
  const one = await carrier.sign(payer, ALL);
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
    await carrier.relay();
    await carrier.watch();
    carrier.clock.advance(PASS_MS);
  }
  const sent = await carrier.transactions();
  expect(sent.map((row) => row.reverted)).toEqual([true, true, true]);
  expect(await carrier.rowsOf([one.id])).toMatchObject([{ state: "ended", alone: true }]);
  expect(carrier.failed.map(({ id }) => id)).toEqual([one.id]);

  // Other transfers never wait for it.
  proxy.onAnswer(undefined);
  const others = (await carrier.signAll(await fundBuyers(chain, 3))).map(({ id }) => id);
  await carrier.relay();
  await carrier.watch();
  expect(await carrier.statesOf(others)).toEqual(Array(3).fill("confirmed"));
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(3);
});
