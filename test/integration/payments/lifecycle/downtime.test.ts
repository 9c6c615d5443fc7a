import type { Hex } from "viem";
import { expect, test } from "vitest";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { fundBuyers, mine, sendUsdc, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type FaultProxy, startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeForeignTraffic } from "../../../support/foreign-traffic.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { setDirect } from "../../../support/quote-fixture.ts";
import { signUnconfirmed } from "../../../support/signed-payment.ts";

const LOG_RANGE = 100;
/** Blocks that the chain makes while no worker runs. */
const DOWNTIME = 3_000;
/** The newest blocks are read one by one. */
const SINGLE_BLOCKS = 32;

const sum = ({ calls }: FaultProxy) => Object.values(calls).reduce((all, count) => all + count, 0);

test("after three thousand blocks without workers, every payment, payout and deposit is found with a few calls per range", async () => {
  const chain = await startChain({ manyBlocks: true });
  const { client } = chain;
  const makeTraffic = await makeForeignTraffic(chain);
  const proxy = await startFaultProxy({ target: chain.url });
  const change = { logRange: LOG_RANGE, finality: { blocks: 12 } };
  const fixture = await makeMerchantFixture(chain, { rpcUrls: [proxy.url], change });
  const pass = async (blocks: number) => {
    for (let left = blocks; left > 0; left -= 300) await mine(chain, Math.min(left, 300));
  };
  const [first, payer, direct, stranger, ...buyers] = await fundBuyers(chain, 7);
  if (!first || !payer || !direct || !stranger) throw new Error("there are too few buyers");
  const settled = await fixture.create();
  await fixture.verify(await fixture.attempt(settled, first));
  await fixture.relay();
  await pass(20);
  await fixture.watch();
  await fixture.watch();

  // The service broadcasts a payout and payments, and stops before any block includes them.
  await client.setAutomine(false);
  expect(await fixture.settle((await fixture.settlementOf(settled)).id)).toEqual(["begun"]);
  await fixture.relay();
  const confirmed: string[] = [];
  for (const buyer of buyers) {
    const paymentId = await fixture.create();
    await fixture.verify(await fixture.attempt(paymentId, buyer));
    await fixture.relay();
    confirmed.push(paymentId);
  }
  const sent = await fixture.db.selectFrom("transaction").selectAll().where("state", "=", "accepted").execute();
  expect(sent).toHaveLength(4);
  // The pool keeps them for almost all of the downtime.
  for (const { hash } of sent) await client.dropTransaction({ hash: hash as Hex });
  await client.setAutomine(true);
  const relayed = await signUnconfirmed(fixture, { chain, buyer: payer });
  await setDirect(fixture, chain.asset, true);
  const paidDirectly = await signUnconfirmed(fixture, { chain, buyer: direct });

  await pass(DOWNTIME / 3);
  await makeTraffic(500);
  await relayed.relay();
  await sendUsdc(chain, stranger, chain.keys.treasury.address, 7n);
  await pass(DOWNTIME / 3);
  await makeTraffic(500);
  await paidDirectly.relay();
  await pass(DOWNTIME / 3);
  for (const { bytes } of sent)
    await client.sendRawTransaction({ serializedTransaction: `0x${bytes.toString("hex")}` });
  await pass(60);

  const before = { all: sum(proxy), receipts: proxy.calls["eth_getTransactionReceipt"] ?? 0 };
  const head = Number(await client.getBlockNumber());
  let passes = 0;
  for (let reached = 0; reached < head && passes < 10; passes += 1) {
    await fixture.watch();
    reached = (await fixture.db.selectFrom("chain_cursor").select("number").executeTakeFirstOrThrow()).number;
  }
  const cost = sum(proxy) - before.all;
  const receipts = (proxy.calls["eth_getTransactionReceipt"] ?? 0) - before.receipts;

  for (const paymentId of [...confirmed, relayed.paymentId, paidDirectly.paymentId])
    expect((await fixture.status(paymentId)).state).toBe("succeeded");
  expect((await fixture.settlementOf(settled)).state).toBe("paid");
  expect(await usdcBalance(chain, fixture.destination)).toBe(2_000_000n);
  const [exceptions] = await listBalances(fixture.db, { account: "exceptions", asset: chain.asset });
  expect(exceptions?.amount).toBe(-7n);
  // Each range is read twice: two calls for its logs and one for each of its ends.
  const ranges = DOWNTIME / LOG_RANGE;
  expect(cost).toBeLessThan(ranges * 7 + SINGLE_BLOCKS * 5 + 60);
  // One for each of our transactions in each pass, and one for each of others.
  expect(receipts).toBeLessThanOrEqual(passes * 4 + 3 + 4);
});
