import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { getEvmChain } from "../../../chains/open-chains.ts";
import { newKey } from "../../../local/networks-document.ts";
import { claimAllDeposits } from "../../../payments/payouts/claim-all-deposits.ts";
import { moveExcess } from "../../../payments/payouts/move-excess.ts";
import { refundPayment } from "../../../payments/payouts/refund-payment.ts";
import { readEntries } from "../../../signer/audit/entries.ts";
import { verifyLog } from "../../../signer/audit/verify-log.ts";
import { rebuildPayouts } from "../../../signer/rebuild.ts";
import { startAlteringProxy } from "../../support/altering-proxy.ts";
import { fundBuyer, sendUsdc, startChain, type TestChain, transfersTo, usdcBalance } from "../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../support/merchant-fixture.ts";
import { testActor } from "../../support/test-actor.ts";
import { startTestSigner } from "../../support/test-signer.ts";

const chain = await startChain();
const known = { accepted: new Set<string>(), left: new Map<string, bigint>() };
const startOf = (own: TestChain) => ({ former: new Map([[own.id, []]]), from: new Map([[own.id, Number(own.since)]]) });

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
  // What the operator let pass is in the new audit log.
  const entries = readEntries(rebuilt.store, { after: undefined, limit: 100 });
  expect(entries.find(({ action }) => action === "rebuild.ended")?.after).toContain(place);
  expect(verifyLog(rebuilt.store, []).findings).toEqual([]);

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
    held: [{ chain: own.id, treasury: own.keys.treasury.address.toLowerCase(), asset: own.asset, amount: 3_000_000n }],
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
  // A thief who hid deposits from the rebuild, so that their payouts have no owner, cannot claim them afterwards.
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
  const rebuildFrom = (block: number) =>
    rebuildPayouts(rebuilt.deps, { ...startOf(own), from: new Map([[own.id, block]]), ...known });
  const afterAll = Number(await own.client.getBlockNumber()) + 1;
  await expect(rebuildFrom(afterAll)).rejects.toThrow("the history lacks the deposit");
  await expect(rebuildFrom(beforeDeposits)).rejects.toThrow("its history sums to 3000000");
  expect(await rebuilt.signer.signPayouts([])).toEqual([]);
  expect(rebuilt.payouts()).toEqual([]);
});

test("a rebuild records nothing when one of two endpoints leaves out a payout and as much that came in", async () => {
  const own = await startChain();
  const lost = await startTestSigner(own);
  const fixture = await makeMerchantFixture(own, { signer: lost.signer });
  const { id } = await fixture.settlementOf(await fixture.pay(await fundBuyer(own), 300n));
  await fixture.settle(id);
  await fixture.relay();
  await fixture.watch();
  // Without these two the treasury's history has the same sum, and no deposit is missing.
  const [paidOut] = await transfersTo(own, fixture.destination);
  const given = await sendUsdc(own, await fundBuyer(own), own.keys.treasury.address, 3_000_000n);
  const hidden = new Set<string | undefined>([paidOut?.transactionHash, given]);
  const { place } = await emptyTreasury(own);

  const endpoint = await startAlteringProxy({ target: own.url });
  const rebuilt = await startTestSigner(own, { rpcUrls: [endpoint.url, own.url] });
  await claimAllDeposits({ db: fixture.db, signer: rebuilt.signer });
  const options = { ...startOf(own), ...known, accepted: new Set([place]) };
  endpoint.alter((method, _params, result) =>
    method === "eth_getLogs"
      ? (result as { transactionHash: string }[]).filter(({ transactionHash }) => !hidden.has(transactionHash))
      : result,
  );
  await expect(rebuildPayouts(rebuilt.deps, options)).rejects.toThrow("two endpoints differ");
  expect(rebuilt.payouts()).toEqual([]);
  endpoint.alter(undefined);
  expect(await rebuildPayouts(rebuilt.deps, options)).toEqual({ recorded: 2, unattributed: [], held: [] });
});

test("a rebuild that is killed while it retires the treasuries can be repeated, with the networks file that it began with", async () => {
  const own = await startChain();
  const rebuilt = await startTestSigner(own);
  const former = newKey().address.toLowerCase();
  const options = { ...startOf(own), ...known, former: new Map([[own.id, [former]]]) };
  // The process ends when it records the second treasury.
  rebuilt.store.exec(
    `create trigger kill before insert on retired_treasury when new.treasury = '${former}' begin select raise(abort, 'killed'); end`,
  );
  await expect(rebuildPayouts(rebuilt.deps, options)).rejects.toThrow("killed");
  expect(rebuilt.store.prepare("select * from retired_treasury").all()).toEqual([]);
  rebuilt.store.exec("drop trigger kill");
  await expect(rebuildPayouts(rebuilt.deps, options)).rejects.toThrow("has no deposits");
  replaceTreasury(rebuilt, own);
  await expect(rebuildPayouts(rebuilt.deps, options)).rejects.toThrow("begun with another networks file");
});

test("a rebuild during which a deposit is verified records nothing: the signer has to be stopped", async () => {
  const own = await startChain();
  const lost = await startTestSigner(own);
  const fixture = await makeMerchantFixture(own, { signer: lost.signer });
  await fixture.pay(await fundBuyer(own), 300n);
  const rebuilt = await startTestSigner(own);
  await claimAllDeposits({ db: fixture.db, signer: rebuilt.signer });
  await fixture.pay(await fundBuyer(own), 100n);
  const { place } = await emptyTreasury(own);
  const options = { ...startOf(own), ...known, accepted: new Set([place]) };
  const opened = getEvmChain(rebuilt.deps.chains, own.id);
  const { rpc } = opened;
  let isClaimed = false;
  const claiming = async (request: { method: string }) => {
    if (!isClaimed && request.method === "eth_getLogs") {
      isClaimed = true;
      await claimAllDeposits({ db: fixture.db, signer: rebuilt.signer });
    }
    return rpc(request as Parameters<typeof rpc>[0]);
  };
  Object.assign(opened, { rpc: claiming });
  await expect(rebuildPayouts(rebuilt.deps, options)).rejects.toThrow("deposits were verified during the rebuild");
  expect(rebuilt.payouts()).toEqual([]);
  expect(await rebuildPayouts(rebuilt.deps, options)).toMatchObject({ recorded: 1 });
});
