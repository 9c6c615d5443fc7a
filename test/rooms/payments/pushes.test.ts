import { encodeAbiParameters, type Hex, keccak256, type PrivateKeyAccount, pad } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { encodePush } from "../../../chains/evm/push.ts";
import { newKey } from "../../../ops/local/networks-document.ts";
import { expirePayment } from "../../../payments/expire.ts";
import { mintTestToken, startKinds, testTokenBalance, tokenOf } from "../../support/kinds.ts";
import { remember } from "../../support/remember.ts";
import { good, makeTill, walletActions } from "../../support/till.ts";

const kinds = await startKinds();
const { chain } = kinds;
const { client } = chain;
const asset = kinds.assets.push;
const start = () => makeTill(chain, { change: kinds.change, assets: [asset] });
const till = await start();
const ether = 10n ** 18n;
/** Where the test token keeps what accounts hold: after its name and its symbol. */
const BALANCES_SLOT = 2n;

async function makeBuyer(gas = ether): Promise<PrivateKeyAccount> {
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, asset, buyer.address);
  await client.setBalance({ address: buyer.address, value: gas });
  return buyer;
}

/** A payment with the call data that its buyer is asked to send. */
async function ask(buyer: PrivateKeyAccount, at = till) {
  const paymentId = await at.create();
  const [option] = await at.offer(paymentId, buyer);
  const [action] = option ? walletActions(option) : [];
  if (!option || action?.method !== "eth_sendTransaction") throw new Error("no push is offered");
  const { to, data } = action.params[0] as { to: Hex; data: Hex };
  const confirm = async (hash: Hex) => {
    const results = [{ type: "walletRpc" as const, data: [hash] }];
    return good(await at.confirm(paymentId, option.id, results)).attemptId ?? "";
  };
  return { paymentId, option, to, data, confirm };
}

async function push(by: PrivateKeyAccount, { to, data }: { to: Hex; data: Hex }): Promise<Hex> {
  const hash = await client.sendTransaction({ account: by, to, data });
  await client.waitForTransactionReceipt({ hash });
  return hash;
}

const stateOf = async (paymentId: string, at = till) => (await at.status(paymentId)).state;
const exceptions = async (at = till) => {
  const rows = await at.db.selectFrom("ledger_entry").select("amount").where("account", "=", "exceptions").execute();
  return rows.map(({ amount }) => amount);
};

test("a push that its wallet confirms succeeds with its own transaction, and is paid out through the Disburser", async () => {
  const buyer = await makeBuyer();
  const asked = await ask(buyer);
  const hash = await push(buyer, asked);
  const attemptId = await asked.confirm(hash);
  await till.verify(attemptId);
  expect(await till.verdict(attemptId)).toBe("verified");
  await till.watch();
  expect(await till.status(asked.paymentId)).toMatchObject({ state: "succeeded", info: { txId: hash } });
  const { id } = await till.settlementOf(asked.paymentId);
  await till.settle(id);
  await till.relay();
  await till.watch();
  expect((await till.settlementOf(asked.paymentId)).state).toBe("paid");
  expect(await testTokenBalance(chain, asset, till.destination)).toBe(1_000_000n);
});

test("a push that its wallet never confirmed pays its payment all the same, and a late confirm is told so", async () => {
  const buyer = await makeBuyer();
  const asked = await ask(buyer);
  const hash = await push(buyer, asked);
  await till.watch();
  expect(await till.status(asked.paymentId)).toMatchObject({ state: "succeeded", info: { txId: hash } });
  const results = [{ type: "walletRpc" as const, data: [hash] }];
  expect(good(await till.confirm(asked.paymentId, asked.option.id, results))).toEqual({ attemptId: null });
});

test("a hash that the network does not know leaves the payment waiting for anybody, and is refused in the end", async () => {
  const buyer = await makeBuyer();
  const asked = await ask(buyer);
  const attemptId = await asked.confirm(`0x${"ab".repeat(32)}`);
  await till.verify(attemptId);
  expect(await till.verdict(attemptId)).toBe("waiting");
  expect(await stateOf(asked.paymentId)).toBe("requires_action");
  till.clock.advance(31_000);
  await till.verify(attemptId);
  expect(await till.verdict(attemptId)).toEqual({ refused: expect.stringContaining("does not know") });
  expect(await stateOf(asked.paymentId)).toBe("requires_action");
});

test.each<[string, (asked: { to: Hex; data: Hex }) => { to: Hex; data: Hex }, "own" | "stranger"]>([
  ["of another amount", ({ to, data }) => ({ to, data: change(data, { amount: 999_999n }) }), "own"],
  ["for another payment", ({ to, data }) => ({ to, data: change(data, { tag: `0x${"09".repeat(32)}` }) }), "own"],
  ["without its tag", ({ to, data }) => ({ to, data: data.slice(0, 138) as Hex }), "own"],
  ["with a byte more", ({ to, data }) => ({ to, data: `${data}00` }), "own"],
  ["of another token", ({ data }) => ({ to: tokenOf(kinds.assets.permit), data }), "own"],
  ["by somebody else", (asked) => asked, "stranger"],
])("the hash of a transaction %s is refused, and its money is not lost", async (_what, spoil, by) => {
  const [buyer, stranger] = [await makeBuyer(), await makeBuyer()];
  await mintTestToken(chain, kinds.assets.permit, buyer.address);
  const asked = await ask(buyer);
  const before = (await exceptions()).length;
  const hash = await push(by === "own" ? buyer : stranger, spoil(asked));
  const attemptId = await asked.confirm(hash);
  await till.verify(attemptId);
  expect(await till.verdict(attemptId)).toEqual({ refused: expect.stringContaining("not the payment") });
  await till.watch();
  expect(await stateOf(asked.paymentId)).toBe("requires_action");
  expect(await exceptions()).toHaveLength(before + 1);
});

describe("a push that is in no block", () => {
  const price = { maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 9n };
  /** Sends a push under a nonce that leaves a gap, so that no block can take it. */
  const pushBehindGap = async (by: PrivateKeyAccount, { to, data }: { to: Hex; data: Hex }) =>
    client.sendTransaction({ account: by, to, data, nonce: 1, gas: 200_000n, ...price });

  test("leaves its payment payable by another option, which pays it once; mined later, it is an exception", async () => {
    const [stuck, other] = [await makeBuyer(), await makeBuyer()];
    const asked = await ask(stuck);
    const attemptId = await asked.confirm(await pushBehindGap(stuck, asked));
    await till.verify(attemptId);
    expect(await till.verdict(attemptId)).toBe("waiting");
    expect(await stateOf(asked.paymentId)).toBe("requires_action");

    const [option] = await till.offer(asked.paymentId, other);
    if (!option) throw new Error("there is no way to pay");
    const hash = await push(other, walletActions(option)[0]?.params[0] as { to: Hex; data: Hex });
    const second = good(await till.confirm(asked.paymentId, option.id, [{ type: "walletRpc", data: [hash] }]));
    await till.verify(second.attemptId ?? "");
    await till.watch();
    expect(await till.status(asked.paymentId)).toMatchObject({ state: "succeeded", info: { txId: hash } });
    await till.verify(attemptId);
    expect(await till.verdict(attemptId)).toMatchObject({ refused: expect.any(String) });

    const before = (await exceptions()).length;
    await client.sendTransaction({ account: stuck, to: stuck.address, nonce: 0, gas: 21_000n, ...price });
    await till.watch();
    expect(await till.status(asked.paymentId)).toMatchObject({ state: "succeeded", info: { txId: hash } });
    expect(await exceptions()).toHaveLength(before + 1);
  });

  test("waits for longer than an unknown hash may, and succeeds as soon as a block has it", async () => {
    const own = await start();
    const buyer = await makeBuyer();
    const asked = await ask(buyer, own);
    const attemptId = await asked.confirm(await pushBehindGap(buyer, asked));
    await own.verify(attemptId);
    own.clock.advance(4 * 60_000);
    await own.verify(attemptId);
    expect(await own.verdict(attemptId)).toBe("waiting");
    await client.sendTransaction({ account: buyer, to: buyer.address, nonce: 0, gas: 21_000n, ...price });
    // The watcher finds it by its tag; nothing else asks for it.
    await own.watch();
    expect(await own.verdict(attemptId)).toBe("verified");
    expect(await stateOf(asked.paymentId, own)).toBe("succeeded");
  });

  test("is refused once another transaction has taken its nonce, and its payment is still payable", async () => {
    const own = await start();
    const buyer = await makeBuyer();
    const asked = await ask(buyer, own);
    const attemptId = await asked.confirm(await pushBehindGap(buyer, asked));
    await own.verify(attemptId);
    const dearer = { maxFeePerGas: 2n * price.maxFeePerGas, maxPriorityFeePerGas: 2n * price.maxPriorityFeePerGas };
    await client.sendTransaction({ account: buyer, to: buyer.address, nonce: 1, gas: 21_000n, ...dearer });
    await client.sendTransaction({ account: buyer, to: buyer.address, nonce: 0, gas: 21_000n, ...price });
    await own.verify(attemptId);
    expect(await own.verdict(attemptId)).toBe("waiting");
    own.clock.advance(31_000);
    await own.verify(attemptId);
    expect(await own.verdict(attemptId)).toEqual({ refused: expect.stringContaining("does not know") });
    expect(await stateOf(asked.paymentId, own)).toBe("requires_action");
  });

  test("keeps its payment open for a minute after the deadline and no longer; mined then, it is an exception", async () => {
    const own = await start();
    const buyer = await makeBuyer();
    const asked = await ask(buyer, own);
    const attemptId = await asked.confirm(await pushBehindGap(buyer, asked));
    own.clock.advance(5 * 60_000 + 30_000);
    await own.watch();
    await own.verify(attemptId);
    expect(await own.verdict(attemptId)).toBe("waiting");
    expect(await expirePayment(own.deps, asked.paymentId)).toMatchObject({ decided: false });
    own.clock.advance(31_000);
    await own.verify(attemptId);
    expect(await own.verdict(attemptId)).toEqual({ refused: "the transaction is in no block" });
    expect(await expirePayment(own.deps, asked.paymentId)).toEqual({ decided: true });
    expect(await stateOf(asked.paymentId, own)).toBe("expired");
    await client.sendTransaction({ account: buyer, to: buyer.address, nonce: 0, gas: 21_000n, ...price });
    await own.watch();
    expect(await stateOf(asked.paymentId, own)).toBe("expired");
    expect(await exceptions(own)).toContain(-1_000_000n);
  });
});

test("a push that its token reverted is refused, and its payment is still payable", async () => {
  const buyer = await makeBuyer();
  const asked = await ask(buyer);
  const holdings = keccak256(
    encodeAbiParameters([{ type: "address" }, { type: "uint256" }], [buyer.address, BALANCES_SLOT]),
  );
  await client.setStorageAt({ address: tokenOf(asset), index: holdings, value: pad("0x0") });
  const hash = await client.sendTransaction({ account: buyer, to: asked.to, data: asked.data, gas: 200_000n });
  await client.waitForTransactionReceipt({ hash });
  const attemptId = await asked.confirm(hash);
  await till.verify(attemptId);
  expect(await till.verdict(attemptId)).toEqual({ refused: "the transaction failed" });
  expect(await stateOf(asked.paymentId)).toBe("requires_action");
});

test("money that comes twice for one payment pays it once, and the second time is an exception", async () => {
  const buyer = await makeBuyer();
  const asked = await ask(buyer);
  await till.watch();
  const before = await exceptions();
  const hash = await push(buyer, asked);
  await push(buyer, asked);
  await till.watch();
  expect(await till.status(asked.paymentId)).toMatchObject({ state: "succeeded", info: { txId: hash } });
  expect((await exceptions()).slice(before.length)).toEqual([-1_000_000n]);
});

test("money that comes again after its payment has succeeded is an exception", async () => {
  const buyer = await makeBuyer();
  const asked = await ask(buyer);
  const hash = await push(buyer, asked);
  await till.watch();
  const before = await exceptions();
  await push(buyer, asked);
  await till.watch();
  expect(await till.status(asked.paymentId)).toMatchObject({ state: "succeeded", info: { txId: hash } });
  expect((await exceptions()).slice(before.length)).toEqual([-1_000_000n]);
  expect(await till.db.selectFrom("failed_booking").select("error").execute()).toEqual([]);
});

test("a push that comes after its payment has ended is an exception, and the payment stays as it was", async () => {
  const own = await start();
  const buyer = await makeBuyer();
  const asked = await ask(buyer, own);
  await own.db.updateTable("payment").set({ state: "expired" }).where("id", "=", asked.paymentId).execute();
  await push(buyer, asked);
  await own.watch();
  expect(await stateOf(asked.paymentId, own)).toBe("expired");
  expect(await exceptions(own)).toContain(-1_000_000n);
});

test("two wallets' pushes to one payment at the same moment pay it once", async () => {
  const [one, other] = [await makeBuyer(), await makeBuyer()];
  const paymentId = await till.create();
  const [first, second] = await till.offer(paymentId, one, other);
  if (!first || !second) throw new Error("there is no way to pay");
  await till.watch();
  const before = await exceptions();
  await push(one, walletActions(first)[0]?.params[0] as { to: Hex; data: Hex });
  await push(other, walletActions(second)[0]?.params[0] as { to: Hex; data: Hex });
  await till.watch();
  expect(await stateOf(paymentId)).toBe("succeeded");
  expect((await exceptions()).slice(before.length)).toEqual([-1_000_000n]);
});

test("a push that a reorg takes away is waited for, and found again in another block", async () => {
  const own = await makeTill(chain, { change: { ...kinds.change, finality: { blocks: 3 } }, assets: [asset] });
  const buyer = await makeBuyer();
  const asked = await ask(buyer, own);
  await own.watch();
  const forget = await remember(chain);
  const hash = await push(buyer, asked);
  await own.verify(await asked.confirm(hash));
  await own.watch();
  const transfer = async () => (await own.transfers()).find((row) => row.payment_id === asked.paymentId)?.state;
  expect(await transfer()).toBe("included");
  await forget();
  await own.watch();
  expect(await transfer()).toBe("awaited");
  expect(await stateOf(asked.paymentId, own)).toBe("processing");
  const again = await push(buyer, asked);
  await client.mine({ blocks: 2 });
  await own.watch();
  expect(await own.status(asked.paymentId)).toMatchObject({ state: "succeeded", info: { txId: again } });
});

test("a payout that its token reverts is tried again when the treasury has the money, and arrives once", async () => {
  const own = await makeTill(chain, { change: { ...kinds.change, finality: { blocks: 3 } }, assets: [asset] });
  const buyer = await makeBuyer();
  const asked = await ask(buyer, own);
  await push(buyer, asked);
  await client.mine({ blocks: 2 });
  await own.watch();
  const { id } = await own.settlementOf(asked.paymentId);
  await own.settle(id);
  // Simulated while the treasury has the money, and carried when it has none: its own transaction fails.
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
  expect(await transfer()).toMatchObject({ state: "ready", last_trouble: "left no log in its transaction" });
  await mintTestToken(chain, asset, treasury, held);
  own.clock.advance(60_000);
  await own.relay();
  await client.mine({ blocks: 3 });
  await own.watch();
  expect((await own.settlementOf(asked.paymentId)).state).toBe("paid");
  expect(await testTokenBalance(chain, asset, own.destination)).toBe(1_000_000n);
});

/** Call data of a push with something else in it. */
function change(data: Hex, to: { amount?: bigint; tag?: Hex }): Hex {
  const receiver: Hex = `0x${data.slice(34, 74)}`;
  const amount = to.amount ?? BigInt(`0x${data.slice(74, 138)}`);
  return encodePush({ receiver, amount, tag: to.tag ?? `0x${data.slice(138)}` });
}
