import { type Hex, type PrivateKeyAccount, parseEther } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { changeDestination, deleteDestination } from "../../../../payments/merchants/destinations.ts";
import { listActions } from "../../../../payments/options/list-options.ts";
import { fundBuyer, startChain, type TestChain, usdcBalance } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap, walletActions } from "../../../support/merchant-fixture.ts";
import { destinationOf, setDirect, startQuotes } from "../../../support/quote-fixture.ts";
import { signUnconfirmed } from "../../../support/signed-payment.ts";
import { testActor } from "../../../support/test-actor.ts";
import { mintTestToken } from "../../../support/token-kinds.ts";

const { chain, assets, makeMerchant } = await startQuotes();
const WITHDRAWN = { ok: false, code: "quote_expired", message: expect.stringContaining("withdrawn") };

async function makeDirect(options: Parameters<typeof makeMerchant>[1] = {}) {
  const fixture = await makeMerchant([assets.usdc], options);
  await setDirect(fixture, assets.usdc, true);
  return fixture;
}
/** Creates a payment whose buyer has signed an option without confirming it. */
const sign = (fixture: MerchantFixture, buyer: PrivateKeyAccount, on: TestChain = chain) =>
  signUnconfirmed(fixture, { chain: on, buyer, cents: 1_000n });
/** Changes the merchant's destination. Returns the new address. */
async function changeAddress(fixture: MerchantFixture): Promise<Hex> {
  const { address } = newKey();
  const entry = await destinationOf(fixture, assets.usdc);
  unwrap(await changeDestination(fixture.deps, { actor: testActor, ...entry, destination: `${chain.id}:${address}` }));
  return address;
}
const stateOf = async (fixture: MerchantFixture, paymentId: string) => (await fixture.status(paymentId)).state;

describe("a changed destination", () => {
  test("a changed destination withdraws its direct options immediately, and new options pay the new account", async () => {
    const fixture = await makeDirect();
    const buyer = await fundBuyer(chain);
    const { paymentId, option, results } = await sign(fixture, buyer);
    const destination = await changeAddress(fixture);
    expect(await fixture.confirm(paymentId, option.id, results)).toMatchObject(WITHDRAWN);
    const query = { paymentId, mode: fixture.mode, optionId: option.id, data: "" };
    expect(await listActions(fixture.deps, query)).toMatchObject(WITHDRAWN);
    const attemptId = await fixture.attempt(paymentId, buyer);
    await fixture.verify(attemptId);
    await fixture.relay();
    await fixture.watch();
    expect(await stateOf(fixture, paymentId)).toBe("succeeded");
    expect(await usdcBalance(chain, fixture.destination)).toBe(0n);
    expect(await usdcBalance(chain, destination)).toBe(10_000_000n);
    expect((await fixture.settlementOf(paymentId)).destination).toBe(`${chain.id}:${destination.toLowerCase()}`);
  });

  test("a changed destination refuses a waiting confirm, and nothing goes to the old account", async () => {
    const fixture = await makeDirect();
    const buyer = await fundBuyer(chain);
    const paymentId = await fixture.create(1_000n);
    const attemptId = await fixture.attempt(paymentId, buyer);
    await changeAddress(fixture);
    await fixture.verify(attemptId);
    expect(await fixture.verificationResult(attemptId)).toEqual({ refused: expect.stringContaining("withdrawn") });
    expect(await stateOf(fixture, paymentId)).toBe("requires_action");
    expect(await fixture.transfers()).toEqual([]);
  });

  test("a destination change during a verification refuses the confirm", async () => {
    const proxy = await startFaultProxy({ target: chain.url });
    const fixture = await makeDirect({ rpcUrls: [proxy.url] });
    const paymentId = await fixture.create(1_000n);
    const attemptId = await fixture.attempt(paymentId, await fundBuyer(chain));
    let moved: Promise<Hex> | undefined;
    proxy.onAnswer(async (method) => {
      if (method !== "eth_call" || moved) return;
      moved = changeAddress(fixture);
      await moved;
    });
    await fixture.verify(attemptId);
    expect(moved).toBeDefined();
    expect(await fixture.verificationResult(attemptId)).toMatchObject({ refused: expect.any(String) });
    expect(await stateOf(fixture, paymentId)).toBe("requires_action");
    expect(await fixture.transfers()).toEqual([]);
  });

  test("money sent to the old account after the change does not pay the payment, and a log line names that account", async () => {
    const fixture = await makeDirect();
    const { paymentId, relay } = await sign(fixture, await fundBuyer(chain));
    await changeAddress(fixture);
    await chain.client.setNextBlockTimestamp({
      timestamp: BigInt(Math.ceil(fixture.deps.now().getTime() / 1_000) + 30),
    });
    await relay();
    await fixture.watch();
    expect(await usdcBalance(chain, fixture.destination)).toBe(10_000_000n);
    expect(await stateOf(fixture, paymentId)).toBe("requires_action");
    expect(await listBalances(fixture.db, { asset: assets.usdc })).toEqual([]);
    const line = fixture.lines.find((one) => one.includes("withdrawn option"));
    expect(line).toContain(paymentId);
    expect(line).toContain(fixture.destination.toLowerCase());
  });

  test("money sent to the old account before the change pays the payment, whose settlement names that account", async () => {
    const fixture = await makeDirect();
    const { paymentId, relay } = await sign(fixture, await fundBuyer(chain));
    await relay();
    // After the relay by the chain's clock, which earlier tests have advanced.
    fixture.clock.advance(60_000);
    await changeAddress(fixture);
    await fixture.watch();
    expect(await stateOf(fixture, paymentId)).toBe("succeeded");
    expect(await fixture.settlementOf(paymentId)).toMatchObject({
      state: "paid",
      amount: 10_000_000n,
      destination: `${chain.id}:${fixture.destination.toLowerCase()}`,
    });
  });

  test("an option that pays the treasury stays valid, and its payout goes to the new account", async () => {
    const fixture = await makeMerchant([assets.usdc]);
    const { paymentId, option, results } = await sign(fixture, await fundBuyer(chain));
    const destination = await changeAddress(fixture);
    const { attemptId } = unwrap(await fixture.confirm(paymentId, option.id, results));
    await fixture.verify(attemptId ?? "");
    await fixture.relay();
    await fixture.watch();
    await fixture.settle((await fixture.settlementOf(paymentId)).id);
    await fixture.relay();
    await fixture.watch();
    expect(await usdcBalance(chain, destination)).toBe(10_000_000n);
  });
});

test("a destination that changes while its payout is signed receives the payout, and the old one receives nothing", async () => {
  const fixture = await makeMerchant([assets.usdc]);
  const paymentId = await fixture.pay(await fundBuyer(chain), 1_000n);
  const { id } = await fixture.settlementOf(paymentId);
  const { signer } = fixture.deps;
  let destination: Hex | undefined;
  const signPayouts: typeof signer.signPayouts = async (payouts) => {
    destination ??= await changeAddress(fixture);
    return signer.signPayouts(payouts);
  };
  Object.assign(fixture.deps, { signer: { ...signer, signPayouts } });
  await fixture.settle(id);
  expect((await fixture.settlementOf(paymentId)).state).toBe("due");
  await fixture.settle(id);
  await fixture.relay();
  await fixture.watch();
  expect(await usdcBalance(chain, fixture.destination)).toBe(0n);
  expect(await usdcBalance(chain, destination ?? "0x")).toBe(10_000_000n);
});

describe("a deleted destination", () => {
  const deleteFor = async (fixture: MerchantFixture, asset: string) =>
    unwrap(await deleteDestination(fixture.deps, { ...(await destinationOf(fixture, asset)), actor: testActor }));

  test.each([true, false])("a deleted destination withdraws the options of its asset (direct: %s)", async (direct) => {
    const fixture = direct ? await makeDirect() : await makeMerchant([assets.usdc]);
    const { paymentId, option, results } = await sign(fixture, await fundBuyer(chain));
    await deleteFor(fixture, assets.usdc);
    expect(await fixture.confirm(paymentId, option.id, results)).toMatchObject(WITHDRAWN);
  });

  test("a push already on its way to the treasury still pays its payment and is owed to the merchant", async () => {
    const fixture = await makeMerchant([assets.push]);
    const buyer = privateKeyToAccount(newKey().privateKey);
    await mintTestToken(chain, assets.push, buyer.address);
    await chain.client.setBalance({ address: buyer.address, value: parseEther("1") });
    const { paymentId, option, results } = await sign(fixture, buyer);
    await deleteFor(fixture, assets.push);
    expect(await fixture.confirm(paymentId, option.id, results)).toMatchObject(WITHDRAWN);
    expect(fixture.lines.some((line) => line.includes("option that has ended") && line.includes(paymentId))).toBe(true);
    await fixture.watch();
    expect(await stateOf(fixture, paymentId)).toBe("succeeded");
    expect(await fixture.settlementOf(paymentId)).toMatchObject({ state: "due", amount: 10_000_000n });
  });
});

test("a push on a chain that has left the networks file is refused, and a log line names its transaction", async () => {
  const fixture = await makeMerchant([assets.push]);
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, assets.push, buyer.address);
  await chain.client.setBalance({ address: buyer.address, value: parseEther("1") });
  const { paymentId, option, results } = await sign(fixture, buyer);
  Object.assign(fixture.deps, { chains: new Map() });
  expect(await fixture.confirm(paymentId, option.id, results)).toMatchObject(WITHDRAWN);
  expect(fixture.lines.some((line) => line.includes("option that has ended") && line.includes(paymentId))).toBe(true);
});

test("a new treasury withdraws the options that pay the old one, and money sent to the old one is not booked", async () => {
  const own = await startChain();
  const before = await makeMerchantFixture(own);
  const treasury = newKey();
  const keys = { ...own.keys, treasury, env: { ...own.keys.env, TREASURY_KEY: treasury.privateKey } };
  const { databaseUrl, accountId, merchantId } = before;
  const after = await makeMerchantFixture({ ...own, keys }, { databaseUrl, merchant: { accountId, merchantId } });
  const [confirming, relayed] = [await fundBuyer(own), await fundBuyer(own)];
  const { paymentId, option, results } = await sign(before, confirming, own);
  const other = await sign(before, relayed, own);
  expect(await after.confirm(paymentId, option.id, results)).toMatchObject(WITHDRAWN);
  const { attemptId } = unwrap(await before.confirm(paymentId, option.id, results));
  await after.verify(attemptId ?? "");
  expect(await after.verificationResult(attemptId ?? "")).toEqual({ refused: expect.stringContaining("withdrawn") });

  await other.relay();
  await after.watch();
  expect(await stateOf(after, other.paymentId)).toBe("requires_action");
  expect(await listBalances(after.db, { asset: own.asset })).toEqual([]);

  const [renewed] = await after.offer(paymentId, confirming);
  expect(walletActions(renewed ?? { actions: [] })[0]?.params[1]).toContain(treasury.address);
  await after.verify(await after.attempt(paymentId, confirming));
  await after.relay();
  await after.watch();
  expect(await stateOf(after, paymentId)).toBe("succeeded");
  expect(await usdcBalance(own, treasury.address)).toBe(10_000_000n);
});
