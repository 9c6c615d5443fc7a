import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { newKey } from "../../../local/networks-document.ts";
import { claimAllDeposits } from "../../../payments/payouts/claim-all-deposits.ts";
import { moveExcess } from "../../../payments/payouts/move-excess.ts";
import { refundPayment } from "../../../payments/payouts/refund-payment.ts";
import { rebuildPayouts } from "../../../signer/rebuild.ts";
import { fundBuyer, sendUsdc, startChain, type TestChain, usdcBalance } from "../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../support/merchant-fixture.ts";
import { testActor } from "../../support/test-actor.ts";
import { startTestSigner } from "../../support/test-signer.ts";

const chain = await startChain();
const known = { accepted: new Set<string>(), left: new Map<string, bigint>() };
const startOf = (own: TestChain) => ({ from: new Map([[own.id, Number(own.since)]]) });

/** Empties the treasury with its key, as an operator does. Returns the transfer's place. */
async function emptyTreasury(own: TestChain): Promise<{ place: string; amount: bigint }> {
  const treasury = privateKeyToAccount(own.keys.treasury.privateKey);
  const amount = await usdcBalance(own, treasury.address);
  const hash = await sendUsdc(own, treasury, newKey().address, amount);
  const { logs } = await own.client.getTransactionReceipt({ hash });
  return { place: `${hash}/${logs[0]?.logIndex}`, amount };
}

/** Lets another treasury follow in a signer, as a changed networks file does. */
function replaceTreasury({ deps }: Awaited<ReturnType<typeof startTestSigner>>, own: TestChain): void {
  const opened = deps.chains.get(own.id);
  if (!opened) throw new Error("the signer has no chain");
  Object.assign(opened, { treasury: newKey().address });
}

/** Returns what decides about later payouts: the sums of each row, without times. */
const sumsOf = ({ store }: Awaited<ReturnType<typeof startTestSigner>>) => ({
  deposits: store.prepare("select payment_id, amount, payer from deposit order by payment_id").all(),
  payouts: store
    .prepare("select nonce, kind, amount, merchant_id, payment_id from payout where kind <> 'accepted' order by nonce")
    .all(),
});

test("a store that was lost is rebuilt from the chain, and another treasury pays nothing a second time", async () => {
  const lost = await startTestSigner(chain);
  const fixture = await makeMerchantFixture(chain, { signer: lost.signer });
  const paid = await fixture.pay(await fundBuyer(chain), 300n);
  const refunded = await fixture.pay(await fundBuyer(chain), 200n);
  const settlement = await fixture.settlementOf(paid);
  await fixture.settle(settlement.id);
  const { refundId } = unwrap(
    await refundPayment(fixture.deps, { actor: testActor, paymentId: refunded, mode: "live" }),
  );
  expect(await fixture.refund(refundId)).toEqual(["begun"]);
  await fixture.relay();
  await fixture.watch();
  await fixture.pay(await fundBuyer(chain), 100n);
  await claimAllDeposits({ db: fixture.db, signer: lost.signer });

  const rebuilt = await startTestSigner(chain);
  await expect(rebuildPayouts(rebuilt.deps, { ...startOf(chain), ...known })).rejects.toThrow("has no deposits");
  expect(await claimAllDeposits({ db: fixture.db, signer: rebuilt.signer })).toEqual({ verified: 3, refused: {} });
  const { place } = await emptyTreasury(chain);
  const options = { ...startOf(chain), ...known, accepted: new Set([place]) };
  expect(await rebuildPayouts(rebuilt.deps, options)).toEqual({ recorded: 3, unattributed: [], held: [] });
  expect(sumsOf(rebuilt)).toEqual(sumsOf(lost));

  replaceTreasury(rebuilt, chain);
  const request = { merchantId: fixture.merchantId, asset: chain.asset, receiver: fixture.destination };
  const ask = async (number: number, amount: bigint) =>
    (await rebuilt.signer.signPayouts([{ kind: "settlement", ...request, deposits: [], number, amount }]))[0];
  expect(await ask(settlement.number, 3_000_000n)).toMatchObject({ ok: false, reason: "treasury_changed" });
  expect(await ask(77, 1_000_001n)).toMatchObject({ ok: false, reason: "funds_short" });
  // The receiver of the settlements on chain is the merchant's destination, although a new one would have to wait.
  expect(await ask(77, 1_000_000n)).toMatchObject({ ok: true });
  await expect(rebuildPayouts(rebuilt.deps, options)).rejects.toThrow("the store has payouts");
  await expect(rebuildPayouts(lost.deps, options)).rejects.toThrow("the store has payouts");
});

test("a transfer to the cold address belongs to the signer, and needs no operator to explain it", async () => {
  const own = await startChain();
  const lost = await startTestSigner(own);
  const fixture = await makeMerchantFixture(own, { signer: lost.signer });
  const cold = { address: newKey().address, target: "0" };
  await lost.setLimits({ asset: { hotBalance: { floor: "0", ceiling: "0", cold } } });
  for (const cents of [300n, 400n]) {
    await fixture.pay(await fundBuyer(own), cents);
    await moveExcess(fixture.deps, own.id);
    await fixture.relay();
    await fixture.watch();
  }
  const rebuilt = await startTestSigner(own);
  await claimAllDeposits({ db: fixture.db, signer: rebuilt.signer });
  expect(await rebuildPayouts(rebuilt.deps, { ...startOf(own), ...known })).toEqual({
    recorded: 2,
    unattributed: [],
    held: [],
  });
});

test("a rebuild records nothing while a transfer belongs to no payout or the treasury has money that lost signatures can take", async () => {
  const own = await startChain();
  const lost = await startTestSigner(own);
  const fixture = await makeMerchantFixture(own, { signer: lost.signer });
  const paid = await fixture.pay(await fundBuyer(own), 300n);
  await fixture.settle((await fixture.settlementOf(paid)).id);
  await fixture.relay();
  await fixture.watch();
  const { id } = await fixture.settlementOf(await fixture.pay(await fundBuyer(own), 300n));

  const rebuilt = await startTestSigner(own);
  await claimAllDeposits({ db: fixture.db, signer: rebuilt.signer });
  Object.assign(fixture.deps, { signer: rebuilt.signer });
  const options = { ...startOf(own), ...known };
  expect(await rebuildPayouts(rebuilt.deps, options)).toEqual({
    recorded: 0,
    unattributed: [],
    held: [{ asset: own.asset, amount: 3_000_000n }],
  });
  const { place, amount } = await emptyTreasury(own);
  const [txHash = "", logIndex] = place.split("/");
  const unattributed = [{ chain: own.id, txHash, logIndex: Number(logIndex), amount }];
  expect(await rebuildPayouts(rebuilt.deps, options)).toEqual({ recorded: 0, unattributed, held: [] });
  expect(rebuilt.payouts()).toEqual([]);
  expect(await fixture.settle(id)).toEqual(["rebuild_unfinished"]);

  // A stranger who sends to the treasury all the time must not keep the rebuild from ending.
  await sendUsdc(own, await fundBuyer(own), own.keys.treasury.address, 7n);
  const accepted = new Set([place]);
  expect(await rebuildPayouts(rebuilt.deps, { ...options, accepted })).toMatchObject({ recorded: 0 });
  const left = new Map([[own.asset, 7n]]);
  expect(await rebuildPayouts(rebuilt.deps, { ...options, accepted, left })).toMatchObject({ recorded: 2, held: [] });
  expect(await fixture.settle(id)).toEqual(["treasury_retired"]);
  // A thief who hid deposits from the rebuild, so that their payouts belong to nobody, cannot claim them afterwards.
  await fixture.pay(await fundBuyer(own), 100n);
  expect(await claimAllDeposits({ db: fixture.db, signer: rebuilt.signer })).toEqual({
    verified: 2,
    refused: { treasury_retired: 1 },
  });
  expect(await rebuilt.signer.moveExcess({ asset: own.asset, pending: 0n })).toMatchObject({ transfer: null });
  const cold = { address: newKey().address, target: "0" };
  await rebuilt.setLimits({ asset: { hotBalance: { floor: "0", ceiling: "0", cold } } });
  expect(await rebuilt.signer.moveExcess({ asset: own.asset, pending: 0n })).toMatchObject({
    reason: "treasury_retired",
  });
});

test("a rebuild records nothing when the history lacks a deposit or differs from the treasury's balance", async () => {
  const own = await startChain();
  const lost = await startTestSigner(own);
  const fixture = await makeMerchantFixture(own, { signer: lost.signer });
  await sendUsdc(own, await fundBuyer(own), own.keys.treasury.address, 7n);
  const beforeDeposits = Number(await own.client.getBlockNumber()) + 1;
  await fixture.pay(await fundBuyer(own), 300n);
  const rebuilt = await startTestSigner(own);
  await claimAllDeposits({ db: fixture.db, signer: rebuilt.signer });
  const rebuildFrom = (block: number) => rebuildPayouts(rebuilt.deps, { from: new Map([[own.id, block]]), ...known });
  const afterAll = Number(await own.client.getBlockNumber()) + 1;
  await expect(rebuildFrom(afterAll)).rejects.toThrow("the history lacks the deposit");
  await expect(rebuildFrom(beforeDeposits)).rejects.toThrow("its history sums to 3000000");
  expect(await rebuilt.signer.signPayouts([])).toEqual([]);
  expect(rebuilt.payouts()).toEqual([]);
});
