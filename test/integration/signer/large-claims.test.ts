import { expect, test } from "vitest";
import { listAllDeposits } from "../../../db/queries/deposits.ts";
import { networksDocument } from "../../../local/networks-document.ts";
import { toClaim } from "../../../payments/payouts/request-payouts.ts";
import { accumulatePayouts } from "../../support/accumulate-payouts.ts";
import { fundBuyer, startChain, transfersTo } from "../../support/evm-chain.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { makeMerchantFixture } from "../../support/merchant-fixture.ts";
import { payInBulk } from "../../support/pay-in-bulk.ts";
import { spawnSigner } from "../../support/spawn-signer.ts";
import { startTestSigner } from "../../support/test-signer.ts";

test("of 300 deposits, one that no endpoint answers and a false one hold up none of the others, and the refusal names both", async () => {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const signing = await startTestSigner(chain, { rpcUrls: [proxy.url] });
  const fixture = await makeMerchantFixture(chain, { signer: signing.signer });
  await payInBulk(chain, fixture, { count: 150 });
  const unanswered = await fixture.pay(await fundBuyer(chain));
  await payInBulk(chain, fixture, { count: 149 });
  const claims = (await listAllDeposits(fixture.db, { after: "", limit: 1_000 })).map(toClaim);
  const silent = claims.find(({ paymentId }) => paymentId === unanswered);
  const [forged] = claims.filter(({ paymentId }) => paymentId !== unanswered);
  if (!silent || !forged) throw new Error("there are no deposits");
  const deposits = claims.map((claim) => (claim === forged ? { ...claim, paymentId: "pay_forged" } : claim));
  proxy.fail(({ method, params }) =>
    method === "eth_getTransactionReceipt" && params[0] === silent.txHash
      ? { code: -32_000, message: "missing trie node" }
      : undefined,
  );
  const paid = { merchantId: fixture.merchantId, asset: chain.asset, receiver: fixture.destination };
  const request = { kind: "settlement", ...paid, number: 1, amount: 300_000_000n, deposits } as const;
  const [refused] = await signing.signer.signPayouts([request]);
  expect(refused).toMatchObject({ ok: false, reason: "chain_unavailable" });
  const detail = refused && "detail" in refused ? refused.detail : "";
  expect(detail).toContain("2 of 300 deposits are not verified");
  expect(detail).toContain(`${silent.txHash}/${silent.logIndex} chain_unavailable`);
  expect(detail).toContain(`${forged.txHash}/${forged.logIndex} deposit_mismatch`);
  const recorded = () => signing.store.prepare("select count(*) as rows from deposit").get();
  expect(recorded()).toEqual({ rows: 298 });

  proxy.fail(undefined);
  const before = proxy.calls["eth_getTransactionReceipt"] ?? 0;
  expect(await signing.signer.claimDeposits(claims)).toEqual(claims.map(() => ({ ok: true })));
  expect(recorded()).toEqual({ rows: 300 });
  expect(
    (proxy.calls["eth_getTransactionReceipt"] ?? 0) - before,
    "only what was open and not known to be final is read",
  ).toBe(1);
});

test("a request with twenty payouts reads the final height once and each transaction once", async () => {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const signing = await startTestSigner(chain, { rpcUrls: [proxy.url] });
  const fixture = await makeMerchantFixture(chain, { signer: signing.signer });
  await payInBulk(chain, fixture, { count: 20 });
  const claims = (await listAllDeposits(fixture.db, { after: "", limit: 1_000 })).map(toClaim);
  const paid = { merchantId: fixture.merchantId, asset: chain.asset, receiver: fixture.destination };
  const payouts = claims.map((claim, at) => {
    const of = { kind: "settlement", ...paid, number: at + 1, amount: 1_000_000n } as const;
    return { ...of, deposits: [claim] };
  });
  // The chain is compared with the networks file before the first request.
  await signing.signer.signPayouts(payouts.slice(0, 1).map((payout) => ({ ...payout, deposits: [] })));
  const before = { ...proxy.calls };
  expect(await signing.signer.signPayouts(payouts)).toMatchObject(payouts.map(() => ({ ok: true })));
  const calls = Object.entries(proxy.calls).map(([method, count]) => [method, count - (before[method] ?? 0)] as const);
  const transactions = new Set(claims.map(({ txHash }) => txHash)).size;
  expect(Object.fromEntries(calls.filter(([, count]) => count > 0))).toEqual({
    eth_blockNumber: 1,
    eth_getTransactionReceipt: transactions,
  });
});

test("when the store cannot record a payout, it records and counts none of the request's deposits, and a repeat succeeds", async () => {
  const chain = await startChain();
  const signing = await startTestSigner(chain);
  const fixture = await makeMerchantFixture(chain, { signer: signing.signer });
  await fixture.pay(await fundBuyer(chain));
  const deposits = (await listAllDeposits(fixture.db, { after: "", limit: 10 })).map(toClaim);
  const paid = { merchantId: fixture.merchantId, asset: chain.asset, receiver: fixture.destination };
  const request = { kind: "settlement", ...paid, number: 1, amount: 1_000_000n, deposits } as const;
  const { store, registry } = signing;
  const recorded = () => store.prepare("select count(*) as rows from deposit").get();
  const counted = async () => (await registry.getSingleMetric("pay_signer_deposits_total")?.get())?.values ?? [];
  store.exec("create trigger full before insert on payout begin select raise(abort, 'disk full'); end");
  expect(await signing.signer.signPayouts([request])).toMatchObject([{ ok: false, reason: "signer_unavailable" }]);
  expect([recorded(), await counted()]).toEqual([{ rows: 0 }, []]);
  store.exec("drop trigger full");
  expect(await signing.signer.signPayouts([request])).toMatchObject([{ ok: true }]);
  expect([recorded(), await counted()]).toMatchObject([{ rows: 1 }, [{ value: 1, labels: { result: "verified" } }]]);
});

test("a settlement with more deposits than one request may have is paid through the signer's process", async () => {
  const chain = await startChain();
  const { contracts, keys } = chain;
  const document = await networksDocument("test", [{ chain: chain.client, contracts, keys, rpcUrls: [chain.url] }]);
  const { signer } = await spawnSigner(document, [chain.asset], keys.env);
  const fixture = await makeMerchantFixture(chain, { signer });
  await accumulatePayouts(fixture, { ms: 60_000 });
  const [first = ""] = await payInBulk(chain, fixture, { count: 1_050 });
  const { id, amount } = await fixture.settlementOf(first);
  expect(amount).toBe(1_050_000_000n);
  fixture.clock.advance(61_000);
  await fixture.watch();
  expect(await fixture.settle(id)).toEqual(["begun"]);
  await fixture.relay();
  await fixture.watch();
  expect(await transfersTo(chain, fixture.destination)).toMatchObject([{ args: { value: 1_050_000_000n } }]);
  expect(await fixture.settlementOf(first)).toMatchObject({ state: "paid" });
});
