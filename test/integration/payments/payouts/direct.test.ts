import { describe, expect, test } from "vitest";
import { moveRows } from "../../../../db/moves.ts";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { reconcileChain } from "../../../../payments/accounting/reconcile-chain.ts";
import { listPaymentViews } from "../../../../payments/lifecycle/list-payments.ts";
import { findPaymentDetail } from "../../../../payments/lifecycle/read-payment.ts";
import { listDestinations } from "../../../../payments/merchants/destinations.ts";
import { setFee } from "../../../../payments/merchants/fee-policies.ts";
import { setDirectPayment } from "../../../../payments/payouts/payout-policies.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { prepareReorg } from "../../../support/chain-reorg.ts";
import { fundBuyer, fundBuyers, sendUsdc, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { signUnconfirmed } from "../../../support/signed-payment.ts";
import { readStatementSince } from "../../../support/statement-sums.ts";
import { testActor } from "../../../support/test-actor.ts";
import { startTokenKinds } from "../../../support/token-kinds.ts";

const chain = await startChain();
const treasury = chain.keys.treasury.address;
async function enableDirect(fixture: MerchantFixture, asset: string, direct = true) {
  const { accountId, merchantId, mode, deps } = fixture;
  const owner = { accountId, merchantId, mode };
  const { id } = unwrap(await listDestinations(deps, owner)).find((one) => one.asset === asset) ?? { id: "" };
  return setDirectPayment(deps, { actor: testActor, ...owner, id, direct });
}
async function makeDirect(options: Parameters<typeof makeMerchantFixture>[1] = {}) {
  const fixture = await makeMerchantFixture(chain, options);
  unwrap(await enableDirect(fixture, chain.asset));
  return fixture;
}

describe("direct destinations", () => {
  test("a direct payment succeeds when a third party submits its authorization before the confirm", async () => {
    const fixture = await makeDirect();
    const buyer = await fundBuyer(chain);
    const { paymentId, relay } = await signUnconfirmed(fixture, { chain, buyer });
    await relay();
    await fixture.watch();
    expect((await fixture.status(paymentId)).state).toBe("succeeded");
    expect((await fixture.settlementOf(paymentId)).state).toBe("paid");
  });

  test("a direct payment that was offered before direct payment ended is found when a third party submits it", async () => {
    const fixture = await makeDirect();
    const { paymentId, relay } = await signUnconfirmed(fixture, { chain, buyer: await fundBuyer(chain) });
    unwrap(await enableDirect(fixture, chain.asset, false));
    await relay();
    await fixture.watch();
    expect((await fixture.status(paymentId)).state).toBe("succeeded");
  });

  test("a direct payment by a destination that was registered while the watcher was running is found", async () => {
    const fixture = await makeMerchantFixture(chain);
    await fixture.watch();
    unwrap(await enableDirect(fixture, chain.asset));
    const { paymentId, relay } = await signUnconfirmed(fixture, { chain, buyer: await fundBuyer(chain) });
    await relay();
    await fixture.watch();
    expect((await fixture.status(paymentId)).state).toBe("succeeded");
  });

  test("transfers of strangers to a direct destination cost no receipt, and the payment among them is found", async () => {
    const proxy = await startFaultProxy({ target: chain.url });
    const fixture = await makeDirect({ rpcUrls: [proxy.url] });
    const { paymentId, relay } = await signUnconfirmed(fixture, { chain, buyer: await fundBuyer(chain) });
    const stranger = await fundBuyer(chain);
    for (const amount of [5n, 1_000_000n]) await sendUsdc(chain, stranger, fixture.destination, amount);
    await relay();
    await fixture.watch();
    expect((await fixture.status(paymentId)).state).toBe("succeeded");
    expect(proxy.calls["eth_getTransactionReceipt"]).toBe(1);
  });

  test("a direct payment is settled the moment it succeeds, and the treasury never holds its money", async () => {
    const fixture = await makeDirect();
    await setFee(fixture.deps, {
      actor: testActor,
      accountId: fixture.accountId,
      merchantId: null,
      basisPoints: 500,
      fixedMicros: 0n,
    });
    const started = fixture.deps.now();
    const before = await usdcBalance(chain, treasury);
    const paymentId = await fixture.pay(await fundBuyer(chain), 1_000n);
    expect(await usdcBalance(chain, fixture.destination)).toBe(10_000_000n);
    expect(await usdcBalance(chain, treasury)).toBe(before);
    const { accountId, merchantId, deps } = fixture;
    const { state, info } = await fixture.status(paymentId);
    expect(state).toBe("succeeded");
    expect(await fixture.settlementOf(paymentId)).toMatchObject({
      state: "paid",
      amount: 10_000_000n,
      due_at: null,
      number: 1,
      destination: `${chain.id}:${fixture.destination.toLowerCase()}`,
    });
    const settlement = { txId: info?.txId, amount: { value: 10_000_000n } };
    const merchant = { accountId, merchantId };
    expect(unwrap(await findPaymentDetail(deps, { paymentId, mode: "live", merchant })).settlement).toMatchObject(
      settlement,
    );
    const query = { accountId, mode: "live", sortBy: "date", sortDir: "desc", limit: 1 } as const;
    expect(unwrap(await listPaymentViews(deps, query)).items[0]).toMatchObject({
      fees: null,
      settlement: { settled: true, txHash: info?.txId },
      settledAt: expect.any(Date),
    });
    expect(await listBalances(fixture.db, { asset: chain.asset })).toEqual([]);
    const statement = await readStatementSince({ deps, merchantId }, started);
    expect(statement).toMatchObject({ payments: 10_000_000n, settled: 10_000_000n, closing: 0n, fees: 0n });
    expect(statement.lines.map(({ txHash }) => txHash)).toEqual([info?.txId, info?.txId]);
    const lines = unwrap(await reconcileChain(deps, { chain: chain.id }));
    expect(lines.filter(({ difference }) => difference !== 0n)).toEqual([]);
  });

  test("a direct destination is paid once by each of several payments that share a transaction", async () => {
    const fixture = await makeDirect();
    const buyers = await fundBuyers(chain, 4);
    const ids = await Promise.all(buyers.map(() => fixture.create(100n)));
    await fixture.verify(
      ...(await Promise.all(buyers.map((buyer, index) => fixture.attempt(ids[index] ?? "", buyer)))),
    );
    await fixture.relay();
    await fixture.watch();
    expect(await usdcBalance(chain, fixture.destination)).toBe(4_000_000n);
    const settlements = await Promise.all(ids.map((id) => fixture.settlementOf(id)));
    expect(settlements.map(({ state, number }) => [state, number]).sort()).toEqual(
      [1, 2, 3, 4].map((number) => ["paid", number]),
    );
  });

  test("a direct payment that a reorg removes is broadcast again with the same bytes and booked once", async () => {
    const own = await startChain();
    const fixture = await makeMerchantFixture(own, { change: { finality: { blocks: 4 } } });
    unwrap(await enableDirect(fixture, own.asset));
    const paymentId = await fixture.create(100n);
    await fixture.verify(await fixture.attempt(paymentId, await fundBuyer(own)));
    const reorg = await prepareReorg(own);
    await fixture.relay();
    await fixture.watch();
    await reorg();
    expect(await usdcBalance(own, fixture.destination)).toBe(0n);
    for (let round = 0; round < 4; round += 1) {
      fixture.clock.advance(20_000);
      await fixture.watch();
      await own.client.mine({ blocks: 3 });
      await fixture.watch();
    }
    expect(await usdcBalance(own, fixture.destination)).toBe(1_000_000n);
    expect((await fixture.status(paymentId)).state).toBe("succeeded");
    expect(await fixture.db.selectFrom("settlement").select("state").execute()).toEqual([{ state: "paid" }]);
  });

  test("a refund of a direct payment is only marked, because we never held the money", async () => {
    const fixture = await makeDirect();
    const paymentId = await fixture.pay(await fundBuyer(chain));
    const { refundId } = unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId, mode: "live" }));
    const row = await fixture.db
      .selectFrom("refund")
      .select(["state", "due_at"])
      .where("id", "=", refundId)
      .executeTakeFirst();
    expect(row).toEqual({ state: "marked", due_at: null });
  });

  test("a direct payment for an ended payment is logged and not booked", async () => {
    const fixture = await makeDirect();
    const paymentId = await fixture.create();
    await fixture.verify(await fixture.attempt(paymentId, await fundBuyer(chain)));
    await moveRows(fixture.db, "payment", {
      ids: [paymentId],
      from: "processing",
      to: "failed",
      at: fixture.deps.now(),
    });
    await fixture.relay();
    await fixture.watch();
    expect(await listBalances(fixture.db, { asset: chain.asset })).toEqual([]);
    expect(fixture.lines.some((line) => line.includes("paid directly for a payment that has ended"))).toBe(true);
    const lines = unwrap(await reconcileChain(fixture.deps, { chain: chain.id }));
    expect(lines.filter(({ difference, account }) => account === "treasury" && difference !== 0n)).toEqual([]);
  });

  test("direct payment is refused for assets whose transfers need more than a relayable signature", async () => {
    const kinds = await startTokenKinds();
    const fixture = await makeMerchantFixture(kinds.chain, {
      change: kinds.change,
      assets: Object.values(kinds.assets),
    });
    expect(await enableDirect(fixture, kinds.assets.permit)).toMatchObject({ code: "params_validation" });
    expect(await enableDirect(fixture, kinds.assets.push)).toMatchObject({ code: "params_validation" });
    unwrap(await enableDirect(fixture, kinds.assets.usdc));
  });
});
