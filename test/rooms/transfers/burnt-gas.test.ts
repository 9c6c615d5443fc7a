import { expect, test } from "vitest";
import { makeCarrier } from "../../support/carry.ts";
import { fundBuyer, fundBuyers, sendUsdc, startChain, transfersTo } from "../../support/chain.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";

const ALL = 1_000_000n;
/** A minute together. */
const TURNS = 15;
const TURN_MS = 4_000;

test("a payer whose money is away whenever a transaction lands costs us three of them, and its transfer ends", async () => {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const carrier = await makeCarrier(chain, { rpcUrls: [proxy.url] });
  const payer = await fundBuyer(chain, ALL);
  const friend = await fundBuyer(chain, 1n);
  const one = await carrier.sign(payer, ALL);
  // The money is there when it is simulated, and gone when it is taken.
  let home = true;
  proxy.onAnswer(async (method) => {
    const leaves = method === "eth_call" && home;
    const returns = method === "eth_sendRawTransaction" && !home;
    if (leaves) await sendUsdc(chain, payer, friend.address, ALL);
    if (returns) await sendUsdc(chain, friend, payer.address, ALL);
    if (leaves || returns) home = !home;
  });

  for (let turn = 0; turn < TURNS; turn += 1) {
    await carrier.relay();
    await carrier.watch();
    carrier.clock.advance(TURN_MS);
  }
  const burnt = await carrier.transactions();
  expect(burnt.map((row) => row.reverted)).toEqual([true, true, true]);
  expect(await carrier.rowsOf([one.id])).toMatchObject([{ state: "ended", alone: true }]);
  expect(carrier.failed.map(({ id }) => id)).toEqual([one.id]);

  // Others never wait for it.
  proxy.onAnswer(undefined);
  const others = (await carrier.signAll(await fundBuyers(chain, 3))).map(({ id }) => id);
  await carrier.relay();
  await carrier.watch();
  expect(await carrier.statesOf(others)).toEqual(Array(3).fill("confirmed"));
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(3);
});
