import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, onTestFinished, test } from "vitest";
import { insertBurnedGas } from "../../../../db/queries/burned-gas.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { listDestinations } from "../../../../payments/merchants/destinations.ts";
import { setDirectPayment } from "../../../../payments/payouts/payout-policies.ts";
import { listEvents } from "../../../../payments/webhooks/list-events.ts";
import { prepareReorg } from "../../../support/chain-reorg.ts";
import { fundBuyer } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { insertLaneRow, insertTransferRow } from "../../../support/insert-rows.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap, walletActions } from "../../../support/merchant-fixture.ts";
import { signUnconfirmed } from "../../../support/signed-payment.ts";
import { testActor } from "../../../support/test-actor.ts";
import { mintTestToken, startTokenKinds, tokenOf } from "../../../support/token-kinds.ts";

const DEPTH = 3;
const kinds = await startTokenKinds();
const { chain } = kinds;
const { client } = chain;

/** Creates a payment with a buyer's accepted transfer, which no lane has sent yet, and returns how another account pushes. */
async function makeAccepted({ direct = false, rpcUrls = [chain.url], assets = kinds.change["assets"] } = {}) {
  const change = { ...kinds.change, assets, finality: { blocks: DEPTH } };
  const fixture = await makeMerchantFixture(chain, { change, rpcUrls, assets: [chain.asset, kinds.assets.push] });
  if (direct) await enableDirect(fixture);
  fixture.clock.stop();
  await client.mine({ blocks: DEPTH });
  await fixture.watch();
  const listExceptions = () =>
    fixture.db.selectFrom("ledger_entry").select("amount").where("account", "=", "exceptions").orderBy("id").execute();
  // Money that earlier tests have left on the chain.
  const { length: former } = await listExceptions();
  const { paymentId, ...other } = direct
    ? await signUnconfirmed(fixture, { chain, buyer: await fundBuyer(chain) })
    : await preparePush(fixture);
  const buyer = await fundBuyer(chain);
  const attemptId = await fixture.attempt(paymentId, buyer);
  await fixture.verify(attemptId);
  expect(await fixture.verificationResult(attemptId)).toBe("verified");
  return {
    fixture,
    buyer,
    push: other.relay,
    statesOf: async () => (await fixture.transfers()).map(({ kind, state }) => `${kind} ${state}`).toSorted(),
    payment: () => fixture.status(paymentId),
    attempts: () => fixture.db.selectFrom("attempt").select(["id", "state"]).orderBy("created_at").execute(),
    exceptions: async () => (await listExceptions()).slice(former).map(({ amount }) => amount),
    watchAtDepth: async () => {
      await client.mine({ blocks: DEPTH });
      await fixture.watch();
    },
  };
}

async function enableDirect({ deps, ...owner }: MerchantFixture) {
  const found = unwrap(await listDestinations(deps, owner)).find(({ asset }) => asset === chain.asset);
  unwrap(await setDirectPayment(deps, { ...owner, actor: testActor, id: found?.id ?? "", direct: true }));
}

/** Records that three transactions of another transfer of the accepted one's payer have burned gas and moved nothing. */
async function barPayer({ db, ...merchant }: MerchantFixture): Promise<void> {
  const { payer } = await db.selectFrom("transfer").select("payer").executeTakeFirstOrThrow();
  const other = await insertTransferRow(db, merchant, { asset: chain.asset, payer });
  await db.updateTable("transfer").set({ state: "ended" }).where("id", "=", other.id).execute();
  const lane = await insertLaneRow(db, chain.id);
  const burned = { transfer_id: other.id, lane_id: lane.id, chain: chain.id, payer, code_hash: null, gas: 300_000n };
  const rows = [0, 1, 2].map((nonce) => ({ ...burned, nonce, alone: true, block_number: 1, at: new Date() }));
  await insertBurnedGas(db, rows);
}

async function preparePush(fixture: MerchantFixture) {
  const paymentId = await fixture.create();
  const pusher = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, kinds.assets.push, pusher.address);
  await client.setBalance({ address: pusher.address, value: 10n ** 18n });
  const options = await fixture.offer(paymentId, pusher);
  const option = options.find(({ amount }) => amount.unit.endsWith(tokenOf(kinds.assets.push)));
  const [action] = option ? walletActions(option) : [];
  if (!action) throw new Error("no push is offered");
  const { to, data } = action.params[0] as { to: Hex; data: Hex };
  const relay = async () => {
    const hash = await client.sendTransaction({ account: pusher, to, data });
    await client.waitForTransactionReceipt({ hash });
    return hash;
  };
  return { paymentId, relay };
}

test("an accepted transfer that was not sent yet pays after other money has left the chain with a reorg", async () => {
  const { fixture, push, statesOf, payment, exceptions, watchAtDepth } = await makeAccepted();
  const reorg = await prepareReorg(chain);
  await push();
  await fixture.watch();
  await reorg();
  await fixture.watch();
  expect(await statesOf()).toEqual(["eip3009 ready"]);
  await fixture.relay();
  await watchAtDepth();
  expect((await payment()).state).toBe("succeeded");
  expect(await statesOf()).toEqual(["eip3009 confirmed"]);
  expect(await exceptions()).toEqual([]);
});

test.each([
  ["the same chain", chain.id],
  ["another chain", "eip155:424242"],
])(
  "money beside an accepted transfer on %s changes nothing before it is final, and then it pays once",
  async (_what, acceptedOn) => {
    const { fixture, push, statesOf, payment, attempts, exceptions, watchAtDepth } = await makeAccepted();
    await fixture.db.updateTable("transfer").set({ chain: acceptedOn }).execute();
    const before = await attempts();
    const hash = await push();
    await fixture.watch();
    expect(await statesOf()).toEqual(["eip3009 ready"]);
    expect(await attempts()).toEqual(before);
    await watchAtDepth();
    expect(await payment()).toMatchObject({ state: "succeeded", info: { txId: hash } });
    expect(await statesOf()).toEqual(["eip3009 ended", "push confirmed"]);
    await watchAtDepth();
    expect(await exceptions()).toEqual([]);
  },
);

test("the event payment.processing names the buyer and the asset of the money that has taken the payment once that is final", async () => {
  const { fixture, buyer, push, watchAtDepth } = await makeAccepted();
  const read = async () => {
    const page = unwrap(await listEvents(fixture.deps, { ...fixture, mode: "live", limit: 200, payload: "full" }));
    const found = page.items.filter(({ type }) => type === "payment.processing");
    return found.map(({ id, data }) => {
      const { processing, payment_state_version: version } = data as PaymentData;
      return { id, version, buyer: processing.buyer_caip10.toLowerCase(), unit: processing.option_amount.unit };
    });
  };
  const [accepted] = await read();
  expect(accepted).toMatchObject({
    buyer: `${chain.id}:${buyer.address.toLowerCase()}`,
    unit: `caip19/${chain.asset}`,
  });
  const hash = await push();
  await watchAtDepth();
  const { from } = await client.getTransaction({ hash });
  // docs/webhooks.md says so in its first rule.
  const taken = { ...accepted, buyer: `${chain.id}:${from}`, unit: `caip19/${kinds.assets.push}` };
  expect(await read()).toEqual([taken]);
});
type PaymentData = {
  payment_state_version: number;
  processing: { buyer_caip10: string; option_amount: { unit: string } };
};

test("an accepted transfer that is sent before other money is final pays, and that money becomes an exception", async () => {
  const { fixture, push, statesOf, payment, exceptions, watchAtDepth } = await makeAccepted();
  const hash = await push();
  await fixture.watch();
  await fixture.relay();
  await watchAtDepth();
  const { state, info } = await payment();
  expect(state).toBe("succeeded");
  expect(info?.txId).not.toBe(hash);
  expect(await statesOf()).toEqual(["eip3009 confirmed"]);
  expect(await exceptions()).toEqual([-1_000_000n]);
});

test("of two equal movements in one block one pays, and the other becomes an exception", async () => {
  const { fixture, push, statesOf, payment, exceptions, watchAtDepth } = await makeAccepted();
  await client.setAutomine(false);
  onTestFinished(() => client.setAutomine(true));
  const pending = async () => (await client.getTxpoolStatus()).pending;
  const first = push();
  await expect.poll(pending).toBe(1);
  const both = Promise.all([first, push()]);
  await expect.poll(pending).toBe(2);
  await client.setAutomine(true);
  await client.mine({ blocks: 1 });
  const hashes = await both;
  await fixture.watch();
  await watchAtDepth();
  const { state, info } = await payment();
  expect(state).toBe("succeeded");
  expect(hashes).toContain(info?.txId);
  expect(await statesOf()).toEqual(["eip3009 ended", "push confirmed"]);
  expect(await exceptions()).toEqual([-1_000_000n]);
});

test("money that moved after the deadline becomes an exception once it is final, and the accepted transfer stays", async () => {
  const { fixture, push, statesOf, payment, exceptions, watchAtDepth } = await makeAccepted();
  const { timestamp } = await client.getBlock();
  await fixture.db
    .updateTable("payment")
    .set({ expires_at: new Date(Number(timestamp) * 1000 - 60_000) })
    .execute();
  await push();
  await fixture.watch();
  await watchAtDepth();
  expect((await payment()).state).toBe("processing");
  expect(await statesOf()).toEqual(["eip3009 ready"]);
  expect(await exceptions()).toEqual([-1_000_000n]);
});

test("a payment does not expire with its authorization while other money waits to be final", async () => {
  const { fixture, push, statesOf, payment, watchAtDepth } = await makeAccepted();
  await push();
  await fixture.watch();
  await fixture.db.updateTable("transfer").set({ valid_before: 1 }).execute();
  await fixture.watch();
  expect(await statesOf()).toEqual(["eip3009 ready"]);
  await watchAtDepth();
  expect((await payment()).state).toBe("succeeded");
});

test("a payment whose payer fails screening does not fail while other money waits to be final", async () => {
  const { fixture, buyer, push, statesOf, payment, watchAtDepth } = await makeAccepted();
  await push();
  await fixture.watch();
  fixture.screened.add(buyer.address.toLowerCase());
  await fixture.relay();
  expect(await statesOf()).toEqual(["eip3009 ready"]);
  await watchAtDepth();
  expect((await payment()).state).toBe("succeeded");
});

test("a payment whose payer has burned too much gas does not fail while other money waits to be final", async () => {
  const { fixture, push, statesOf, payment, watchAtDepth } = await makeAccepted();
  await push();
  await fixture.watch();
  await barPayer(fixture);
  await fixture.watch();
  expect(await statesOf()).toContain("eip3009 ready");
  await watchAtDepth();
  expect((await payment()).state).toBe("succeeded");
});

test("a large movement pays only once a second endpoint shows it", async () => {
  const away = await startFaultProxy({ target: chain.url });
  const assets = (kinds.change["assets"] as object[]).map((asset) => ({ ...asset, agreementThreshold: "1000000" }));
  const { push, statesOf, payment, watchAtDepth } = await makeAccepted({ rpcUrls: [chain.url, away.url], assets });
  away.refuse(true);
  await push();
  await watchAtDepth();
  await watchAtDepth();
  expect(await statesOf()).toEqual(["eip3009 ready"]);
  away.refuse(false);
  await expect.poll(() => watchAtDepth().then(payment), { timeout: 30_000 }).toMatchObject({ state: "succeeded" });
  expect(await statesOf()).toEqual(["eip3009 ended", "push confirmed"]);
});

test("money that went to the merchant directly pays once it is final", async () => {
  const { fixture, push, statesOf, payment, watchAtDepth } = await makeAccepted({ direct: true });
  await push();
  await fixture.watch();
  expect(await statesOf()).toEqual(["eip3009 ready"]);
  await watchAtDepth();
  expect((await payment()).state).toBe("succeeded");
  expect(await statesOf()).toEqual(["eip3009 confirmed", "eip3009 ended"]);
});

test("money that went to the merchant directly beside a transfer that was sent is not booked", async () => {
  const { fixture, push, payment, exceptions, watchAtDepth } = await makeAccepted({ direct: true });
  await push();
  await fixture.watch();
  await fixture.relay();
  await watchAtDepth();
  expect((await payment()).state).toBe("succeeded");
  expect(await exceptions()).toEqual([]);
  expect(await fixture.db.selectFrom("failed_booking").select("error").execute()).toEqual([]);
});
