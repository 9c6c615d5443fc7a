import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { newKey } from "../../../local/networks-document.ts";
import { claimAllDeposits } from "../../../payments/payouts/claim-all-deposits.ts";
import { moveExcess } from "../../../payments/payouts/move-excess.ts";
import { refundPayment } from "../../../payments/payouts/refund-payment.ts";
import { rebuildPayouts } from "../../../signer/rebuild.ts";
import { fundBuyer, sendUsdc, startChain } from "../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../support/merchant-fixture.ts";
import { testActor } from "../../support/test-actor.ts";
import { startTestSigner } from "../../support/test-signer.ts";

const chain = await startChain();
const from = new Map([[chain.id, Number(chain.since)]]);
const none: ReadonlySet<string> = new Set();

/** Returns what decides about later payouts: the sums of each row, without times. */
const sumsOf = ({ store }: Awaited<ReturnType<typeof startTestSigner>>) => ({
  deposits: store.prepare("select payment_id, amount, payer from deposit order by payment_id").all(),
  payouts: store.prepare("select nonce, kind, amount, merchant_id, payment_id from payout order by nonce").all(),
});

test("a store that was lost is rebuilt from the chain, and pays nothing a second time", async () => {
  const lost = await startTestSigner(chain);
  const fixture = await makeMerchantFixture(chain, { signer: lost.signer });
  const paid = await fixture.pay(await fundBuyer(chain), 300n);
  const refunded = await fixture.pay(await fundBuyer(chain), 200n);
  await fixture.settle((await fixture.settlementOf(paid)).id);
  const { refundId } = unwrap(
    await refundPayment(fixture.deps, { actor: testActor, paymentId: refunded, mode: "live" }),
  );
  expect(await fixture.refund(refundId)).toEqual(["begun"]);
  await fixture.relay();
  await fixture.watch();

  const rebuilt = await startTestSigner(chain);
  expect(await claimAllDeposits({ db: fixture.db, signer: rebuilt.signer })).toEqual({ verified: 2, refused: {} });
  expect(await rebuildPayouts(rebuilt.deps, { from, accepted: none })).toEqual({ recorded: 2, unattributed: [] });
  expect(sumsOf(rebuilt)).toEqual(sumsOf(lost));

  Object.assign(fixture.deps, { signer: rebuilt.signer });
  const request = { merchantId: fixture.merchantId, asset: chain.asset, receiver: fixture.destination, deposits: [] };
  const [second] = await rebuilt.signer.signPayouts([{ kind: "settlement", ...request, number: 77, amount: 1n }]);
  expect(second).toMatchObject({ ok: false, reason: "funds_short" });
  // The receiver of the settlements on chain is the merchant's destination, although a new one would have to wait.
  const later = await fixture.pay(await fundBuyer(chain), 100n);
  expect(await fixture.settle((await fixture.settlementOf(later)).id)).toEqual(["begun"]);
  await expect(rebuildPayouts(rebuilt.deps, { from, accepted: none })).rejects.toThrow("the store has payouts");
});

test("a rebuilt store knows the transfers to the cold address, and the next one has the next number", async () => {
  const own = await startChain();
  const lost = await startTestSigner(own);
  const fixture = await makeMerchantFixture(own, { signer: lost.signer });
  const cold = { address: newKey().address, target: "1000000" };
  const keep = { asset: { hotBalance: { floor: "1000000", ceiling: "2000000", cold } } };
  await lost.setLimits(keep);
  for (const cents of [300n, 400n]) {
    await fixture.pay(await fundBuyer(own), cents);
    await moveExcess(fixture.deps, own.id);
    await fixture.relay();
    await fixture.watch();
  }

  const rebuilt = await startTestSigner(own);
  await rebuilt.setLimits(keep);
  await claimAllDeposits({ db: fixture.db, signer: rebuilt.signer });
  const since = new Map([[own.id, Number(own.since)]]);
  expect(await rebuildPayouts(rebuilt.deps, { from: since, accepted: none })).toEqual({
    recorded: 2,
    unattributed: [],
  });
  await fixture.pay(await fundBuyer(own), 500n);
  expect(await rebuilt.signer.moveExcess({ asset: own.asset, pending: 0n })).toMatchObject({
    transfer: { number: 3, amount: 5_000_000n },
  });
});

test("a transfer out of the treasury that belongs to no payout stops the rebuild until the operator accepts it", async () => {
  const own = await startChain();
  const since = new Map([[own.id, Number(own.since)]]);
  const lost = await startTestSigner(own);
  const fixture = await makeMerchantFixture(own, { signer: lost.signer });
  const paid = await fixture.pay(await fundBuyer(own), 300n);
  await fixture.settle((await fixture.settlementOf(paid)).id);
  await fixture.pay(await fundBuyer(own), 300n);
  await fixture.relay();
  await fixture.watch();
  const hash = await sendUsdc(own, privateKeyToAccount(own.keys.treasury.privateKey), newKey().address, 1_000n);
  const { logs } = await own.client.getTransactionReceipt({ hash });

  const rebuilt = await startTestSigner(own);
  await claimAllDeposits({ db: fixture.db, signer: rebuilt.signer });
  const stopped = await rebuildPayouts(rebuilt.deps, { from: since, accepted: none });
  const place = { txHash: hash, logIndex: logs[0]?.logIndex ?? -1 };
  expect(stopped).toEqual({ recorded: 0, unattributed: [{ chain: own.id, ...place, amount: 1_000n }] });
  expect(rebuilt.payouts()).toEqual([]);

  const accepted = new Set([`${place.txHash}/${place.logIndex}`]);
  expect(await rebuildPayouts(rebuilt.deps, { from: since, accepted })).toEqual({ recorded: 2, unattributed: [] });
});
