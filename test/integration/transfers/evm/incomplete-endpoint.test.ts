import { expect, test } from "vitest";
import { RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { prepareReorg } from "../../../support/chain-reorg.ts";
import { fundBuyer, mine, sendUsdc, startChain } from "../../../support/evm-chain.ts";
import { makeTransfersFixture, waitUntilMined } from "../../../support/transfers-fixture.ts";

/** How long an endpoint that does not show everything is waited for. */
const WAIT_MS = 30_000;
/** What an endpoint returns for every receipt: none, or Geth's error while it builds its index of transactions. */
const NONE = null;
const INDEXING = new RpcRefusal({ code: -32_000, message: "transaction indexing is in progress" });
const MALFORMED = { blockHash: "0x01", blockNumber: "0x1", gasUsed: "zz" };

const FAILURES = /receipt of|transaction indexing|Cannot convert zz/;

/** A chain of two endpoints. The first one shows blocks and logs, and can be made to show no receipts. */
async function startWithIncompleteEndpoint() {
  const chain = await startChain();
  const first = await startAlteringProxy({ target: chain.url });
  const rpcUrls = [first.url, chain.url];
  const fixture = await makeTransfersFixture(chain, { rpcUrls, change: { finality: { blocks: 2 } } });
  await fixture.watch();
  /** Undefined shows them. */
  const hideReceipts = (answer: unknown) =>
    first.alter((method, _params, result) =>
      method === "eth_getTransactionReceipt" && answer !== undefined ? answer : result,
    );
  /** Relays a payment, which is then in a final block. */
  const pay = async () => {
    const { id } = await fixture.sign(await fundBuyer(chain));
    await fixture.relay();
    await waitUntilMined(chain);
    await mine(chain, 2);
    return id;
  };
  /** Makes passes until the cursor is at the last block before the one whose receipts are hidden. Each of them fails. */
  const watchInVain = async () => {
    await expect(fixture.watch()).rejects.toThrow(FAILURES);
    await expect(fixture.watch()).rejects.toThrow(FAILURES);
  };
  return { chain, first, fixture, hideReceipts, pay, watchInVain };
}

test.each([
  ["none", NONE],
  ["an error", INDEXING],
  ["a malformed answer", MALFORMED],
])(
  "a chain goes on with the second endpoint when the first one shows a block and returns %s for its receipts",
  async (_what, answer) => {
    const { chain, fixture, hideReceipts, pay, watchInVain } = await startWithIncompleteEndpoint();
    hideReceipts(answer);
    const id = await pay();
    await watchInVain();
    fixture.clock.advance(WAIT_MS / 2);
    await expect(fixture.watch()).rejects.toThrow(FAILURES);
    expect(await fixture.statesOf([id])).toEqual(["assigned"]);
    fixture.clock.advance(WAIT_MS / 2);
    await fixture.watch();
    expect(await fixture.statesOf([id])).toEqual(["confirmed"]);

    // The first endpoint is not waited for at the next block, even if it has shown a block without our transactions meanwhile.
    await mine(chain, 1);
    await fixture.watch();
    const next = await pay();
    await fixture.watch();
    expect(await fixture.statesOf([next])).toEqual(["confirmed"]);

    // Once it has shown a block with a transaction of ours, it is waited for as before.
    hideReceipts(undefined);
    const third = await pay();
    await fixture.watch();
    expect(await fixture.statesOf([third])).toEqual(["confirmed"]);
    hideReceipts(answer);
    await pay();
    await watchInVain();
  },
);

test("a stranger's deposit is booked by the second endpoint when the first one has no receipt of it", async () => {
  const { chain, fixture, hideReceipts, watchInVain } = await startWithIncompleteEndpoint();
  hideReceipts(NONE);
  await sendUsdc(chain, await fundBuyer(chain), fixture.evm.treasury, 7n);
  await mine(chain, 2);
  await watchInVain();
  fixture.clock.advance(WAIT_MS);
  await fixture.watch();
  expect(fixture.unmatched.map(({ amount }) => amount)).toEqual([7n]);
});

test("a long gap with a payment is read from the second endpoint when the first one has no receipts", async () => {
  const { chain, fixture, hideReceipts, pay } = await startWithIncompleteEndpoint();
  hideReceipts(NONE);
  const id = await pay();
  await mine(chain, 60);
  await expect(fixture.watch()).rejects.toMatchObject({ code: "rpc_behind" });
  fixture.clock.advance(WAIT_MS);
  await fixture.watch();
  expect(await fixture.statesOf([id])).toEqual(["confirmed"]);
});

test.each([
  ["a time that no date holds", { timestamp: "0xffffffffffff" }],
  ["a fee of more than 32 bytes", { baseFeePerGas: `0x${"f".repeat(70)}` }],
  ["a transaction whose hash is no hex", { transactions: ["0x\u0000"] }],
])("a chain goes on with the second endpoint when the blocks of the first one have %s", async (_what, members) => {
  const { first, fixture, pay } = await startWithIncompleteEndpoint();
  first.alter((method, _params, result) =>
    method === "eth_getBlockByNumber" && result ? { ...result, ...members } : result,
  );
  const id = await pay();
  await expect(fixture.watch()).rejects.toMatchObject({ code: "rpc_answer" });
  fixture.clock.advance(WAIT_MS);
  await fixture.watch();
  expect(await fixture.statesOf([id])).toEqual(["confirmed"]);
});

test("a reorg is followed with the second endpoint while the first one garbles blocks", async () => {
  const { chain, first, fixture } = await startWithIncompleteEndpoint();
  first.alter((method, _params, result) =>
    method === "eth_getBlockByNumber" && result ? { ...result, timestamp: "zz" } : result,
  );
  await mine(chain);
  await expect(fixture.watch()).rejects.toMatchObject({ code: "rpc_answer" });
  fixture.clock.advance(WAIT_MS);
  await fixture.watch();
  const reorg = await prepareReorg(chain);
  await mine(chain);
  await fixture.watch();
  await reorg();
  await mine(chain);
  await fixture.watch();
  const { number, hash } = await chain.client.getBlock();
  expect(await fixture.cursor()).toMatchObject({ number: Number(number), blockId: hash });
});
