import { expect, test } from "vitest";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { type FaultProxy, startFaultProxy } from "../../../support/fault-proxy.ts";
import { payUnsolicited, waitFinalized } from "../../../support/solana-history.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyers, sendTokens, startTestSolana, tokenBalance } from "../../../support/test-solana.ts";

/** Slots that the cluster makes while no worker runs, twice. */
const DOWNTIME = 5_000;
/** Slots after which the held transactions land, within the lifetime of their blockhashes. */
const HELD = 100;
/** Transfers of strangers during the downtime. */
const FOREIGN = 20;
/** Nodes keep statuses of this age in memory no more, milliseconds. */
const FORGOTTEN_MS = 60_000;

const sum = ({ calls }: FaultProxy) => Object.values(calls).reduce((all, count) => all + count, 0);

test("after ten thousand slots without workers, every payment, payout and deposit is found, and the slots add no calls", async () => {
  const solana = await startTestSolana({ own: true });
  const proxy = await startFaultProxy({ target: solana.url });
  const fixture = await makeSolanaMerchantFixture(solana, { rpcUrls: [proxy.url, proxy.url] });
  const [first, payer, stranger, other, ...buyers] = await fundSolanaBuyers(solana, 7);
  if (!first || !payer || !stranger || !other) throw new Error("there are too few buyers");
  const settled = await fixture.pay(first);

  // The service sends a payout and payments, and stops before they land.
  await solana.knobs.hold(HELD);
  expect(await fixture.settle((await fixture.settlementOf(settled)).id)).toEqual(["begun"]);
  // Without slots, no blockhash expires while a slow machine sends the others.
  await solana.knobs.pause();
  const sent: string[] = [];
  for (const buyer of buyers) {
    const paymentId = await fixture.create();
    await fixture.verify(await fixture.attempt(paymentId, buyer));
    sent.push(paymentId);
  }
  const sends = () => proxy.calls["sendTransaction"] ?? 0;
  const sentBefore = sends();
  await fixture.submit();
  expect(sends() - sentBefore).toBe(buyers.length + 1);
  expect((await fixture.transactions()).filter(({ state }) => state === "signed")).toHaveLength(buyers.length + 1);
  await solana.knobs.hold(0);
  await solana.knobs.resume();

  await solana.knobs.jump(DOWNTIME);
  const unsolicited = await payUnsolicited(solana, fixture, payer);
  const deposit = await sendTokens(solana, { from: stranger, to: fixture.keys.treasury.address, amount: 7n });
  for (let made = 0; made < FOREIGN; made += 1)
    await sendTokens(solana, { from: stranger, to: other.address, amount: BigInt(made + 1) });
  await waitFinalized(solana, deposit);
  await solana.knobs.jump(DOWNTIME);
  await solana.knobs.pause();
  fixture.clock.advance(FORGOTTEN_MS);

  const before = sum(proxy);
  while ((await fixture.readHistory()) === "more");
  for (let pass = 0; pass < 2; pass += 1) await fixture.watchOnly();
  const cost = sum(proxy) - before;

  for (const paymentId of [...sent, unsolicited]) expect((await fixture.status(paymentId)).state).toBe("succeeded");
  expect((await fixture.settlementOf(settled)).state).toBe("paid");
  expect(await tokenBalance(solana, fixture.destination)).toBe(1_000_000n);
  const [exceptions] = await listBalances(fixture.db, { account: "exceptions", asset: solana.asset });
  expect(exceptions?.amount).toBe(-7n);
  expect(cost).toBeLessThan(40);
});
