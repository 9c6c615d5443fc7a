import { encodeAbiParameters, type Hex, pad, parseAbi, toFunctionSelector } from "viem";
import { expect, test } from "vitest";
import { operator } from "../../../../local/chain-client.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { addDestinations } from "../../../../payments/merchants/destinations.ts";
import { createMerchant } from "../../../../payments/merchants/merchants.ts";
import { dispatchRefunds } from "../../../../payments/payouts/dispatch-payouts.ts";
import { findRefundView } from "../../../../payments/payouts/find-refunds.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { withdrawRefund } from "../../../../payments/payouts/withdraw-refunds.ts";
import { type Alter, RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import {
  fundBuyer,
  fundBuyers,
  mine,
  startChain,
  type TestChain,
  transfersTo,
  usdcBalance,
} from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";

const AMOUNT = 1_000_000n;
const blocklistAbi = parseAbi(["function blacklist(address)", "function unBlacklist(address)"]);

/** Adds an account to the token issuer's blocklist, or removes it. */
async function setBlocked(chain: TestChain, functionName: "blacklist" | "unBlacklist", account: Hex): Promise<void> {
  const call = {
    address: chain.contracts.token,
    abi: blocklistAbi,
    functionName,
    args: [account],
    account: operator,
  } as const;
  await chain.client.waitForTransactionReceipt({ hash: await chain.client.writeContract(call) });
}

/** Creates a verified payment whose payer the issuer blocks before any transaction is sent. */
async function makeBlockedPayer() {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const buyer = await fundBuyer(chain);
  const paymentId = await fixture.create(100n);
  await fixture.verify(await fixture.attempt(paymentId, buyer));
  await setBlocked(chain, "blacklist", buyer.address);
  const lane = chain.keys.lanes[0]?.address ?? "0x";
  const gas = await chain.client.getBalance({ address: lane });
  for (let round = 0; round < 8; round += 1) {
    await fixture.relay();
    await fixture.watch();
    fixture.clock.advance(10_000);
  }
  expect(await fixture.status(paymentId)).toMatchObject({ state: "processing" });
  expect((await fixture.transfers()).map(({ state }) => state)).toEqual(["ready"]);
  expect((await fixture.transfers())[0]?.last_error).toContain("blacklisted");
  const expectNothingSpent = async () => {
    expect(await chain.client.getBalance({ address: lane })).toBe(gas);
    expect(await chain.client.getTransactionCount({ address: lane })).toBe(0);
  };
  await expectNothingSpent();
  return { chain, fixture, buyer, paymentId, expectNothingSpent };
}

test("a payer blocked by the issuer after the confirm costs no gas, and the payment expires with its authorization", async () => {
  const { chain, fixture, paymentId, expectNothingSpent } = await makeBlockedPayer();
  await chain.client.increaseTime({ seconds: 3_600 });
  await mine(chain, 2);
  await fixture.watch();
  expect(await fixture.status(paymentId)).toMatchObject({ state: "expired" });
  expect((await fixture.transfers()).map(({ state }) => state)).toEqual(["ended"]);
  await fixture.relay();
  await expectNothingSpent();
});

test("a payer whom the issuer unblocks in time still pays", async () => {
  const { chain, fixture, buyer, paymentId } = await makeBlockedPayer();
  await setBlocked(chain, "unBlacklist", buyer.address);
  fixture.clock.advance(60_000);
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.status(paymentId)).toMatchObject({ state: "succeeded" });
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});

test("a merchant whose destination the issuer blocks is not paid, keeps its balance and does not delay other merchants", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const other = await addMerchant(fixture, chain);
  const ids = [await fixture.create(100n), await fixture.create(100n, { merchantId: other.merchantId })];
  for (const [index, buyer] of (await fundBuyers(chain, 2)).entries())
    await fixture.verify(await fixture.attempt(ids[index] ?? "", buyer));
  await fixture.relay();
  await fixture.watch();
  await setBlocked(chain, "blacklist", fixture.destination);

  const settlements = await Promise.all(ids.map((id) => fixture.settlementOf(id)));
  await fixture.settle(...settlements.map(({ id }) => id));
  for (let round = 0; round < 8; round += 1) {
    await fixture.relay();
    await fixture.watch();
    fixture.clock.advance(10_000);
  }
  const states = async () => (await Promise.all(ids.map((id) => fixture.settlementOf(id)))).map(({ state }) => state);
  expect(await states()).toEqual(["paying", "paid"]);
  expect(await usdcBalance(chain, other.destination)).toBe(AMOUNT);
  expect(await usdcBalance(chain, chain.keys.treasury.address)).toBe(AMOUNT);
  const held = (await fixture.transfers()).find(({ settlement_id: of }) => of === settlements[0]?.id);
  expect(held).toMatchObject({ state: "ready", last_error: expect.stringContaining("blacklisted") });

  await setBlocked(chain, "unBlacklist", fixture.destination);
  fixture.clock.advance(60_000);
  await fixture.relay();
  await fixture.watch();
  expect(await states()).toEqual(["paid", "paid"]);
  expect(await usdcBalance(chain, fixture.destination)).toBe(AMOUNT);
});

async function addMerchant({ deps, accountId, mode }: MerchantFixture, chain: TestChain) {
  const whom = { accountId, mode, name: "Other shop", email: "other@example.test" };
  const { id: merchantId } = await createMerchant(deps, { ...whom, actor: testActor });
  const destination = newKey().address;
  const settlements = [{ asset: chain.asset, destination: `${chain.id}:${destination}` }];
  unwrap(await addDestinations(deps, { actor: testActor, accountId, mode, merchantId, settlements }));
  return { merchantId, destination };
}

test("a refund to a payer whom the issuer has blocked is never signed, and its merchant is paid once it is withdrawn", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const { deps, db, merchantId } = fixture;
  const [buyer, other] = await fundBuyers(chain, 2);
  if (!buyer || !other) throw new Error("no buyers");
  const [blocked, served] = [await fixture.pay(buyer, 300n), await fixture.pay(other, 200n)];
  await setBlocked(chain, "blacklist", buyer.address);
  const request = async (paymentId: string) =>
    unwrap(await refundPayment(deps, { actor: testActor, paymentId, mode: fixture.mode })).refundId;
  const [refundId, next] = [await request(blocked), await request(served)];
  expect(await dispatchRefunds(deps, [refundId, next])).toEqual(["receiver_blocked", "begun"]);
  const view = async () => unwrap(await findRefundView(deps, { refundId }));
  expect(await view()).toMatchObject({ status: "held", reason: "receiver_blocked" });
  expect((await fixture.transfers()).map(({ refund_id }) => refund_id)).toEqual([null, null, next]);
  const queue = db.selectFrom("payout_queue").select("blocked_by").where("kind", "=", "refund");
  expect(await queue.where("merchant_id", "=", merchantId).execute()).toEqual([{ blocked_by: null }]);

  unwrap(await withdrawRefund(deps, { actor: testActor, refundId }));
  expect(await view()).toMatchObject({ status: "failed", reason: "withdrawn" });
  expect(await fixture.settle((await fixture.settlementOf(blocked)).id)).toEqual(["begun"]);
  await fixture.relay();
  await fixture.watch();
  expect(await usdcBalance(chain, fixture.destination)).toBe(3n * AMOUNT);

  // Once the issuer has ended the block, the payment can be refunded.
  await setBlocked(chain, "unBlacklist", buyer.address);
  await fixture.pay(await fundBuyer(chain), 300n);
  expect(await dispatchRefunds(deps, [await request(blocked)])).toEqual(["begun"]);
});

/** Replaces an endpoint's answers about block lists. */
const alterBlockLists =
  (answer: unknown): Alter =>
  (method, params, result) =>
    method === "eth_call" && BLOCK_LISTS.some((selector) => JSON.stringify(params).includes(selector))
      ? answer
      : result;
const BLOCK_LISTS = ["isBlacklisted", "isBlackListed"].map((name) => toFunctionSelector(`${name}(address)`).slice(2));

/** The answer of an endpoint that shows an account as blocked, or as not blocked, by both functions. */
function showBlocked(isBlocked: boolean): Alter {
  const result = { success: true, returnData: pad(isBlocked ? "0x1" : "0x0") };
  const results = [
    {
      type: "tuple[]",
      components: [
        { type: "bool", name: "success" },
        { type: "bytes", name: "returnData" },
      ],
    },
  ];
  return alterBlockLists(encodeAbiParameters(results, [[result, result]]));
}

/** Requests the refund of a payment on a network with several endpoints, of which the first one can be altered. */
async function startRefund({ endpoints }: { endpoints: number }) {
  const chain = await startChain();
  const proxies = [];
  for (let index = 0; index < endpoints; index += 1) proxies.push(await startAlteringProxy({ target: chain.url }));
  const [first] = proxies;
  if (!first) throw new Error("no endpoint");
  const fixture = await makeMerchantFixture(chain, { rpcUrls: proxies.map(({ url }) => url) });
  const buyer = await fundBuyer(chain);
  const paymentId = await fixture.pay(buyer, 300n);
  const refund = unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId, mode: fixture.mode }));
  const dispatch = () => dispatchRefunds(fixture.deps, [refund.refundId]);
  const readStatus = async () => unwrap(await findRefundView(fixture.deps, refund)).status;
  return { chain, first, buyer, dispatch, readStatus };
}

test("one endpoint of three that shows a refund's receiver as blocked by the issuer does not hold the refund", async () => {
  const { first, dispatch } = await startRefund({ endpoints: 3 });
  first.alter(showBlocked(true));
  expect(await dispatch()).toEqual(["begun"]);
});

test("one endpoint of three that conceals the issuer's block does not have the refund signed", async () => {
  const { chain, first, buyer, dispatch, readStatus } = await startRefund({ endpoints: 3 });
  await setBlocked(chain, "blacklist", buyer.address);
  first.alter(showBlocked(false));
  expect(await dispatch()).toEqual(["receiver_blocked"]);
  expect(await readStatus()).toBe("held");
});

test("a refund waits, and is not held, while one of two endpoints alone shows its receiver as blocked by the issuer", async () => {
  const { first, dispatch, readStatus } = await startRefund({ endpoints: 2 });
  first.alter(showBlocked(true));
  await expect(dispatch()).rejects.toMatchObject({ code: "endpoints_disagree", transient: true });
  expect(await readStatus()).toBe("pending");
  first.alter(undefined);
  expect(await dispatch()).toEqual(["begun"]);
});

test("one endpoint that answers holds no refund alone while the other one is away, and has one sent that it does not show as blocked", async () => {
  const blocked = await startRefund({ endpoints: 2 });
  await setBlocked(blocked.chain, "blacklist", blocked.buyer.address);
  const away = alterBlockLists(new RpcRefusal({ code: -32603, message: "internal error" }));
  blocked.first.alter(away);
  await expect(blocked.dispatch()).rejects.toMatchObject({ code: "endpoints_disagree" });
  expect(await blocked.readStatus()).toBe("pending");
  const served = await startRefund({ endpoints: 2 });
  served.first.alter(away);
  expect(await served.dispatch()).toEqual(["begun"]);
});
