import { encodeAbiParameters, type Hex, keccak256, type PrivateKeyAccount, pad } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { encodePush } from "../../../../chains/evm/push-call-data.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { expirePayment } from "../../../../payments/lifecycle/expire-payment.ts";
import { prepareReorg } from "../../../support/chain-reorg.ts";
import { makeMerchantFixture, signOption, unwrap, walletActions } from "../../../support/merchant-fixture.ts";
import { deployTestContract } from "../../../support/test-contracts.ts";
import { mintTestToken, startTokenKinds, testTokenBalance, tokenOf } from "../../../support/token-kinds.ts";

const kinds = await startTokenKinds();
const { chain } = kinds;
const { client } = chain;
const asset = kinds.assets.push;
const start = () => makeMerchantFixture(chain, { change: kinds.change, assets: [asset] });
const fixture = await start();
const ether = 10n ** 18n;
/** Storage slot of the test token's balances, after its name and symbol. */
const BALANCES_SLOT = 2n;

async function makeBuyer(gas = ether): Promise<PrivateKeyAccount> {
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, asset, buyer.address);
  await client.setBalance({ address: buyer.address, value: gas });
  return buyer;
}

/** Creates a payment and returns it with the call data that its buyer is asked to send. */
async function requestPush(buyer: PrivateKeyAccount, at = fixture) {
  const paymentId = await at.create();
  const [option] = await at.offer(paymentId, buyer);
  const [action] = option ? walletActions(option) : [];
  if (!option || action?.method !== "eth_sendTransaction") throw new Error("no push is offered");
  const { to, data } = action.params[0] as { to: Hex; data: Hex };
  const confirm = async (hash: Hex) => {
    const results = [{ type: "walletRpc" as const, data: [hash] }];
    return unwrap(await at.confirm(paymentId, option.id, results)).attemptId ?? "";
  };
  return { paymentId, option, to, data, confirm };
}

async function push(by: PrivateKeyAccount, { to, data }: { to: Hex; data: Hex }): Promise<Hex> {
  const hash = await client.sendTransaction({ account: by, to, data });
  await client.waitForTransactionReceipt({ hash });
  return hash;
}

const stateOf = async (paymentId: string, at = fixture) => (await at.status(paymentId)).state;
const exceptions = async (at = fixture) => {
  const rows = await at.db.selectFrom("ledger_entry").select("amount").where("account", "=", "exceptions").execute();
  return rows.map(({ amount }) => amount);
};

test("a push confirmed by its wallet pays with its own transaction and is paid out through the Disburser", async () => {
  const buyer = await makeBuyer();
  const requested = await requestPush(buyer);
  const hash = await push(buyer, requested);
  const attemptId = await requested.confirm(hash);
  await fixture.verify(attemptId);
  expect(await fixture.verificationResult(attemptId)).toBe("verified");
  await fixture.watch();
  expect(await fixture.status(requested.paymentId)).toMatchObject({ state: "succeeded", info: { txId: hash } });
  const { id } = await fixture.settlementOf(requested.paymentId);
  await fixture.settle(id);
  await fixture.relay();
  await fixture.watch();
  expect((await fixture.settlementOf(requested.paymentId)).state).toBe("paid");
  expect(await testTokenBalance(chain, asset, fixture.destination)).toBe(1_000_000n);
});

test("a push that its wallet never confirms still pays, and a late confirm makes no attempt", async () => {
  const buyer = await makeBuyer();
  const requested = await requestPush(buyer);
  const hash = await push(buyer, requested);
  await fixture.watch();
  expect(await fixture.status(requested.paymentId)).toMatchObject({ state: "succeeded", info: { txId: hash } });
  const results = [{ type: "walletRpc" as const, data: [hash] }];
  expect(unwrap(await fixture.confirm(requested.paymentId, requested.option.id, results))).toEqual({ attemptId: null });
});

test("a push pays although a confirm with another hash waited when it arrived, and its wallet gets the payment's status", async () => {
  const buyer = await makeBuyer();
  const requested = await requestPush(buyer);
  const invented = await requested.confirm(keccak256("0x01"));
  const hash = await push(buyer, requested);
  await fixture.watch();
  expect(await fixture.verificationResult(invented)).toBe("verified");
  expect(await requested.confirm(hash), "no further attempt").toBe("");
  const other = [{ type: "walletRpc" as const, data: [keccak256("0x02")] }];
  const refused = await fixture.confirm(requested.paymentId, requested.option.id, other);
  expect(refused).toMatchObject({ ok: false, code: "invalid_state" });
  expect(await stateOf(requested.paymentId)).toBe("succeeded");
});

test("a hash unknown to the chain leaves the payment open to all payers and is refused after its waiting time", async () => {
  const buyer = await makeBuyer();
  const requested = await requestPush(buyer);
  const attemptId = await requested.confirm(`0x${"ab".repeat(32)}`);
  await fixture.verify(attemptId);
  expect(await fixture.verificationResult(attemptId)).toBe("waiting");
  expect(await stateOf(requested.paymentId)).toBe("requires_action");
  fixture.clock.advance(31_000);
  await fixture.verify(attemptId);
  expect(await fixture.verificationResult(attemptId)).toEqual({ refused: expect.stringContaining("does not know") });
  expect(await stateOf(requested.paymentId)).toBe("requires_action");
});

test.each<[string, (requested: { to: Hex; data: Hex }) => { to: Hex; data: Hex }, "own" | "stranger"]>([
  ["of another amount", ({ to, data }) => ({ to, data: change(data, { amount: 999_999n }) }), "own"],
  ["for another payment", ({ to, data }) => ({ to, data: change(data, { tag: `0x${"09".repeat(32)}` }) }), "own"],
  ["without the payment tag", ({ to, data }) => ({ to, data: data.slice(0, 138) as Hex }), "own"],
  ["with an extra byte", ({ to, data }) => ({ to, data: `${data}00` }), "own"],
  ["of another token", ({ data }) => ({ to: tokenOf(kinds.assets.permit), data }), "own"],
  ["by another sender", (requested) => requested, "stranger"],
])("the hash of a transaction %s is refused, and its money is not lost", async (_what, spoil, by) => {
  const [buyer, stranger] = [await makeBuyer(), await makeBuyer()];
  await mintTestToken(chain, kinds.assets.permit, buyer.address);
  const requested = await requestPush(buyer);
  const before = (await exceptions()).length;
  const hash = await push(by === "own" ? buyer : stranger, spoil(requested));
  const attemptId = await requested.confirm(hash);
  await fixture.verify(attemptId);
  expect(await fixture.verificationResult(attemptId)).toEqual({ refused: expect.stringContaining("not the payment") });
  await fixture.watch();
  expect(await stateOf(requested.paymentId)).toBe("requires_action");
  expect(await exceptions()).toHaveLength(before + 1);
});

describe("a push that is not mined", () => {
  const price = { maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 9n };
  /** Sends a push under a nonce that leaves a gap, so that no block can take it. */
  const pushBehindGap = async (by: PrivateKeyAccount, { to, data }: { to: Hex; data: Hex }) =>
    client.sendTransaction({ account: by, to, data, nonce: 1, gas: 200_000n, ...price });

  test("a payment with an unmined push can be paid by another option, and the push becomes an exception when mined", async () => {
    const [stuck, other] = [await makeBuyer(), await makeBuyer()];
    const requested = await requestPush(stuck);
    const attemptId = await requested.confirm(await pushBehindGap(stuck, requested));
    await fixture.verify(attemptId);
    expect(await fixture.verificationResult(attemptId)).toBe("waiting");
    expect(await stateOf(requested.paymentId)).toBe("requires_action");

    const [option] = await fixture.offer(requested.paymentId, other);
    if (!option) throw new Error("there is no way to pay");
    const hash = await push(other, walletActions(option)[0]?.params[0] as { to: Hex; data: Hex });
    const second = unwrap(await fixture.confirm(requested.paymentId, option.id, [{ type: "walletRpc", data: [hash] }]));
    await fixture.verify(second.attemptId ?? "");
    await fixture.watch();
    expect(await fixture.status(requested.paymentId)).toMatchObject({ state: "succeeded", info: { txId: hash } });
    await fixture.verify(attemptId);
    expect(await fixture.verificationResult(attemptId)).toMatchObject({ refused: expect.any(String) });

    const before = (await exceptions()).length;
    await client.sendTransaction({ account: stuck, to: stuck.address, nonce: 0, gas: 21_000n, ...price });
    await fixture.watch();
    expect(await fixture.status(requested.paymentId)).toMatchObject({ state: "succeeded", info: { txId: hash } });
    expect(await exceptions()).toHaveLength(before + 1);
  });

  test("an unmined push waits longer than an unknown hash and succeeds once it is mined", async () => {
    const own = await start();
    const buyer = await makeBuyer();
    const requested = await requestPush(buyer, own);
    const attemptId = await requested.confirm(await pushBehindGap(buyer, requested));
    await own.verify(attemptId);
    own.clock.advance(4 * 60_000);
    await own.verify(attemptId);
    expect(await own.verificationResult(attemptId)).toBe("waiting");
    await client.sendTransaction({ account: buyer, to: buyer.address, nonce: 0, gas: 21_000n, ...price });
    // Only the watcher finds it, by its tag.
    await own.watch();
    expect(await own.verificationResult(attemptId)).toBe("verified");
    expect(await stateOf(requested.paymentId, own)).toBe("succeeded");
  });

  test("an unmined push is refused once another transaction uses its nonce, and its payment can still be paid", async () => {
    const own = await start();
    const buyer = await makeBuyer();
    const requested = await requestPush(buyer, own);
    const attemptId = await requested.confirm(await pushBehindGap(buyer, requested));
    await own.verify(attemptId);
    const higherPrice = {
      maxFeePerGas: 2n * price.maxFeePerGas,
      maxPriorityFeePerGas: 2n * price.maxPriorityFeePerGas,
    };
    await client.sendTransaction({ account: buyer, to: buyer.address, nonce: 1, gas: 21_000n, ...higherPrice });
    await client.sendTransaction({ account: buyer, to: buyer.address, nonce: 0, gas: 21_000n, ...price });
    await own.verify(attemptId);
    expect(await own.verificationResult(attemptId)).toBe("waiting");
    own.clock.advance(31_000);
    await own.verify(attemptId);
    expect(await own.verificationResult(attemptId)).toEqual({ refused: expect.stringContaining("does not know") });
    expect(await stateOf(requested.paymentId, own)).toBe("requires_action");
  });

  test("an unmined push keeps its payment open for one minute after the deadline and becomes an exception when mined later", async () => {
    const own = await start();
    const buyer = await makeBuyer();
    const requested = await requestPush(buyer, own);
    const attemptId = await requested.confirm(await pushBehindGap(buyer, requested));
    own.clock.advance(5 * 60_000 + 30_000);
    await own.watch();
    await own.verify(attemptId);
    expect(await own.verificationResult(attemptId)).toBe("waiting");
    expect(await expirePayment(own.deps, requested.paymentId)).toMatchObject({ decided: false });
    own.clock.advance(31_000);
    await own.verify(attemptId);
    expect(await own.verificationResult(attemptId)).toEqual({ refused: "the transaction is in no block" });
    expect(await expirePayment(own.deps, requested.paymentId)).toEqual({ decided: true });
    expect(await stateOf(requested.paymentId, own)).toBe("expired");
    await client.sendTransaction({ account: buyer, to: buyer.address, nonce: 0, gas: 21_000n, ...price });
    await own.watch();
    expect(await stateOf(requested.paymentId, own)).toBe("expired");
    expect(await exceptions(own)).toContain(-1_000_000n);
  });

  test("a push whose confirm was refused a minute after the deadline still pays when the clock of its chain is minutes behind", async () => {
    const change = { ...kinds.change, maxHeadAgeMs: 60_000 };
    const own = await makeMerchantFixture(chain, { change, assets: [asset] });
    const buyer = await makeBuyer();
    const requested = await requestPush(buyer, own);
    const attemptId = await requested.confirm(await pushBehindGap(buyer, requested));
    own.clock.advance(6 * 60_000 + 1_000);
    await own.watch();
    await own.verify(attemptId);
    expect(await own.verificationResult(attemptId)).toEqual({ refused: "the transaction is in no block" });
    expect(await expirePayment(own.deps, requested.paymentId)).toMatchObject({ decided: false });
    await client.sendTransaction({ account: buyer, to: buyer.address, nonce: 0, gas: 21_000n, ...price });
    await own.watch();
    expect(await stateOf(requested.paymentId, own)).toBe("succeeded");
  });
});

test("a reverted push is refused, and its payment can still be paid", async () => {
  const buyer = await makeBuyer();
  const requested = await requestPush(buyer);
  const holdings = keccak256(
    encodeAbiParameters([{ type: "address" }, { type: "uint256" }], [buyer.address, BALANCES_SLOT]),
  );
  await client.setStorageAt({ address: tokenOf(asset), index: holdings, value: pad("0x0") });
  const hash = await client.sendTransaction({ account: buyer, to: requested.to, data: requested.data, gas: 200_000n });
  await client.waitForTransactionReceipt({ hash });
  const attemptId = await requested.confirm(hash);
  await fixture.verify(attemptId);
  expect(await fixture.verificationResult(attemptId)).toEqual({ refused: "the transaction failed" });
  expect(await stateOf(requested.paymentId)).toBe("requires_action");
});

test("a push whose token has kept a part of the amount is refused, and its payment can still be paid", async () => {
  const asset = `${chain.id}/erc20:${await deployTestContract(chain.client, "Tokens", "FeeSwitchToken")}`;
  const entry = { asset, symbol: "SWT", name: "Switch", kind: "push", decimals: 6, peg: "iso4217/USD" };
  const change = { ...kinds.change, assets: [entry] };
  const other = await makeMerchantFixture(chain, { change, assets: [asset] });
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, asset, buyer.address);
  await client.setBalance({ address: buyer.address, value: 10n ** 18n });
  const id = await other.create();
  const [option] = await other.offer(id, buyer);
  if (!option) throw new Error("there is no way to pay");
  // The token begins to take one percent.
  await client.setStorageAt({ address: tokenOf(asset), index: "0x5", value: pad("0x64") });
  const { attemptId } = unwrap(await other.confirm(id, option.id, await signOption(option, buyer, chain)));
  await other.verify(attemptId ?? "");
  expect(await other.verificationResult(attemptId ?? "")).toEqual({ refused: expect.stringContaining("did not move") });
  expect((await other.status(id)).state).toBe("requires_action");
});

test("two pushes of one buyer pay a payment once, and the second becomes an exception", async () => {
  const buyer = await makeBuyer();
  const requested = await requestPush(buyer);
  await fixture.watch();
  const before = await exceptions();
  const hash = await push(buyer, requested);
  await push(buyer, requested);
  await fixture.watch();
  expect(await fixture.status(requested.paymentId)).toMatchObject({ state: "succeeded", info: { txId: hash } });
  expect((await exceptions()).slice(before.length)).toEqual([-1_000_000n]);
});

test("a push for a succeeded payment becomes an exception", async () => {
  const buyer = await makeBuyer();
  const requested = await requestPush(buyer);
  const hash = await push(buyer, requested);
  await fixture.watch();
  const before = await exceptions();
  await push(buyer, requested);
  await fixture.watch();
  expect(await fixture.status(requested.paymentId)).toMatchObject({ state: "succeeded", info: { txId: hash } });
  expect((await exceptions()).slice(before.length)).toEqual([-1_000_000n]);
  expect(await fixture.db.selectFrom("failed_booking").select("error").execute()).toEqual([]);
});

test("a push for an expired payment becomes an exception and does not change the payment", async () => {
  const own = await start();
  const buyer = await makeBuyer();
  const requested = await requestPush(buyer, own);
  await own.db.updateTable("payment").set({ state: "expired" }).where("id", "=", requested.paymentId).execute();
  await push(buyer, requested);
  await own.watch();
  expect(await stateOf(requested.paymentId, own)).toBe("expired");
  expect(await exceptions(own)).toContain(-1_000_000n);
});

test("pushes of two wallets to one payment pay it once", async () => {
  const [one, other] = [await makeBuyer(), await makeBuyer()];
  const paymentId = await fixture.create();
  const [first, second] = await fixture.offer(paymentId, one, other);
  if (!first || !second) throw new Error("there is no way to pay");
  await fixture.watch();
  const before = await exceptions();
  await push(one, walletActions(first)[0]?.params[0] as { to: Hex; data: Hex });
  await push(other, walletActions(second)[0]?.params[0] as { to: Hex; data: Hex });
  await fixture.watch();
  expect(await stateOf(paymentId)).toBe("succeeded");
  expect((await exceptions()).slice(before.length)).toEqual([-1_000_000n]);
});

test("a push removed by a reorg is awaited and found again in another block", async () => {
  const own = await makeMerchantFixture(chain, {
    change: { ...kinds.change, finality: { blocks: 3 } },
    assets: [asset],
  });
  const buyer = await makeBuyer();
  const requested = await requestPush(buyer, own);
  await own.watch();
  const reorg = await prepareReorg(chain);
  const hash = await push(buyer, requested);
  await own.verify(await requested.confirm(hash));
  await own.watch();
  const transfer = async () => (await own.transfers()).find((row) => row.payment_id === requested.paymentId)?.state;
  expect(await transfer()).toBe("included");
  await reorg();
  await own.watch();
  expect(await transfer()).toBe("awaited");
  expect(await stateOf(requested.paymentId, own)).toBe("processing");
  const secondHash = await push(buyer, requested);
  await client.mine({ blocks: 2 });
  await own.watch();
  expect(await own.status(requested.paymentId)).toMatchObject({ state: "succeeded", info: { txId: secondHash } });
});

test("a reverted payout is retried when the treasury has the money and arrives once", async () => {
  const own = await makeMerchantFixture(chain, {
    change: { ...kinds.change, finality: { blocks: 3 } },
    assets: [asset],
  });
  const buyer = await makeBuyer();
  const requested = await requestPush(buyer, own);
  await push(buyer, requested);
  await client.mine({ blocks: 2 });
  await own.watch();
  const { id } = await own.settlementOf(requested.paymentId);
  await own.settle(id);
  // The simulation sees the treasury's money. The block does not, so the transaction fails.
  await client.setAutomine(false);
  await own.relay();
  const treasury = chain.keys.treasury.address;
  const held = await testTokenBalance(chain, asset, treasury);
  const holdings = keccak256(
    encodeAbiParameters([{ type: "address" }, { type: "uint256" }], [treasury, BALANCES_SLOT]),
  );
  await client.setStorageAt({ address: tokenOf(asset), index: holdings, value: pad("0x0") });
  await client.mine({ blocks: 1 });
  await client.setAutomine(true);
  await own.watch();
  const transfer = async () => (await own.transfers()).find((row) => row.settlement_id === id);
  expect(await transfer()).toMatchObject({ state: "ready", last_error: "left no log in its transaction" });
  await mintTestToken(chain, asset, treasury, held);
  own.clock.advance(60_000);
  await own.relay();
  await client.mine({ blocks: 3 });
  await own.watch();
  expect((await own.settlementOf(requested.paymentId)).state).toBe("paid");
  expect(await testTokenBalance(chain, asset, own.destination)).toBe(1_000_000n);
});

/** Returns a push's call data with another amount or tag. */
function change(data: Hex, to: { amount?: bigint; tag?: Hex }): Hex {
  const receiver: Hex = `0x${data.slice(34, 74)}`;
  const amount = to.amount ?? BigInt(`0x${data.slice(74, 138)}`);
  return encodePush({ receiver, amount, tag: to.tag ?? `0x${data.slice(138)}` });
}
