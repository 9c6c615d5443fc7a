import { sql } from "kysely";
import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { beforeEach, expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { mintUsdc } from "../../../../local/usdc.ts";
import { createBookingHandlers } from "../../../../payments/lifecycle/book-transfers.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { confirmAsContractWallet } from "../../../support/gas-burners.ts";
import { type MerchantFixture, makeMerchantFixture, walletActions } from "../../../support/merchant-fixture.ts";
import { mintTestToken, startTokenKinds, tokenOf } from "../../../support/token-kinds.ts";

/** A stranger with the payment's link confirms with a wallet that approves its signature only while it is verified. */
const kinds = await startTokenKinds({ lanes: 2 });
const { chain } = kinds;
const { client } = chain;
const proxy = await startFaultProxy({ target: chain.url });
const options = { change: kinds.change, assets: [chain.asset, kinds.assets.push], rpcUrls: [proxy.url] };
const APPROVES: Hex = "0x631626ba7e60e01b60005260206000f3";
const APPROVES_NOTHING: Hex = "0x60006000f3";

let fixture: MerchantFixture;
/** Exceptions of the money that earlier tests have left on the chain. */
let former = 0;
beforeEach(async () => {
  fixture = await makeMerchantFixture(chain, options);
  fixture.clock.stop();
  await fixture.watch();
  former = (await listExceptions()).length;
});

/** Creates a payment that is accepted with a stranger's wallet, and the options of two buyers who push. */
async function makeAccepted() {
  const paymentId = await fixture.create();
  const buyer = await requestPush(paymentId);
  const other = await requestPush(paymentId);
  const wallet = await makeWallet();
  const attemptId = await confirmAsContractWallet(fixture, paymentId, { address: wallet });
  await fixture.verify(attemptId);
  expect(await fixture.verificationResult(attemptId)).toBe("verified");
  return { paymentId, attemptId, wallet, other, ...buyer };
}

async function makeWallet(): Promise<Hex> {
  const { address } = privateKeyToAccount(newKey().privateKey);
  await mintUsdc(client, chain.contracts.token, [address], 2_000_000n);
  await client.setCode({ address, bytecode: APPROVES });
  return address;
}

/** Returns a new buyer's option, and a function that pushes its money. */
async function requestPush(paymentId: string) {
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, kinds.assets.push, buyer.address);
  await client.setBalance({ address: buyer.address, value: 10n ** 18n });
  const option = (await fixture.offer(paymentId, buyer)).find(({ amount }) =>
    amount.unit.endsWith(tokenOf(kinds.assets.push)),
  );
  const [action] = option ? walletActions(option) : [];
  if (!option || !action) throw new Error("no push is offered");
  const { to, data } = action.params[0] as { to: Hex; data: Hex };
  const push = async () => {
    const hash = await client.sendTransaction({ account: buyer, to, data });
    await client.waitForTransactionReceipt({ hash });
    return hash;
  };
  return { optionId: option.id, buyer: buyer.address, push };
}

const listExceptions = () =>
  fixture.db.selectFrom("ledger_entry").select("amount").where("account", "=", "exceptions").orderBy("id").execute();
const newExceptions = async () => (await listExceptions()).slice(former).map(({ amount }) => amount);
const attemptsOf = (paymentId: string) =>
  fixture.db
    .selectFrom("attempt")
    .select(["option_id", "state"])
    .where("payment_id", "=", paymentId)
    .orderBy("created_at")
    .execute();
const transactions = () => fixture.db.selectFrom("transaction").select("hash").execute();

test("a push pays although a stranger's transfer was accepted, which was never sent and fails", async () => {
  const { paymentId, attemptId, wallet, optionId, push } = await makeAccepted();
  await client.setCode({ address: wallet, bytecode: APPROVES_NOTHING });
  await fixture.relay();
  expect(await fixture.transfers()).toMatchObject([{ state: "ready", retries: 1 }]);
  const hash = await push();
  await fixture.watch();

  expect(await fixture.status(paymentId)).toMatchObject({ state: "succeeded", info: { txId: hash } });
  expect(await newExceptions()).toEqual([]);
  expect((await fixture.transfers()).map(({ state }) => state).toSorted()).toEqual(["confirmed", "ended"]);
  expect(await transactions()).toEqual([]);
  const attempts = await attemptsOf(paymentId);
  expect(attempts.map(({ state }) => state).toSorted()).toEqual(["refused", "verified"]);
  expect(attempts.find(({ state }) => state === "verified")).toMatchObject({ option_id: optionId });
  expect(await fixture.verificationResult(attemptId)).toEqual({ refused: expect.stringContaining("other money") });
  // The buyer's wallet gets the payment's status, and the stranger's too.
  const results = [{ type: "walletRpc" as const, data: [hash] }];
  expect(await fixture.confirm(paymentId, optionId, results)).toEqual({ ok: true, value: { attemptId: null } });
  const moves = await fixture.db.selectFrom("event").select("to_state").where("subject", "=", paymentId).execute();
  expect(moves.map(({ to_state }) => to_state)).toEqual(["requires_action", "processing", "succeeded"]);
});

test("a push pays although the transfer that was accepted is of another chain", async () => {
  const { paymentId, push } = await makeAccepted();
  await fixture.db.updateTable("transfer").set({ chain: "eip155:424242" }).execute();
  await push();
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  expect(await newExceptions()).toEqual([]);
});

test("a transfer that gives way to a push while a lane prepares it is not sent", async () => {
  const { paymentId, push } = await makeAccepted();
  await push();
  let watched: Promise<unknown> | undefined;
  proxy.onAnswer(async (method) => {
    if (method === "eth_call" && !watched) {
      watched = fixture.watch();
      await watched;
    }
  });
  await fixture.relay();
  proxy.onAnswer(undefined);
  expect(watched).toBeDefined();
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  expect(await transactions()).toEqual([]);
});

test("a transfer that was sent does not give way: it pays, and the push becomes an exception", async () => {
  const { paymentId, push } = await makeAccepted();
  await client.setAutomine(false);
  await fixture.relay();
  expect(await fixture.transfers()).toMatchObject([{ state: "assigned" }]);
  const [sent] = await transactions();
  await client.setAutomine(true);
  await push();
  await fixture.watch();
  expect(await fixture.status(paymentId)).toMatchObject({ state: "succeeded", info: { txId: sent?.hash } });
  expect(await newExceptions()).toEqual([-1_000_000n]);
});

test("of two pushes in one block one pays, and the other becomes an exception", async () => {
  const { paymentId, other, push } = await makeAccepted();
  await client.setAutomine(false);
  const both = Promise.all([push(), other.push()]);
  await expect.poll(async () => (await client.getTxpoolStatus()).pending).toBe(2);
  await client.setAutomine(true);
  await client.mine({ blocks: 1 });
  await both;
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  expect(await newExceptions()).toEqual([-1_000_000n]);
  expect((await fixture.transfers()).map(({ state }) => state).toSorted()).toEqual(["confirmed", "ended"]);
});

test("of two movements that watchers record at the same moment one pays, and the accepted transfer ends once", async () => {
  const { paymentId, optionId, other } = await makeAccepted();
  const quotes = await fixture.db
    .selectFrom("payment_option")
    .selectAll()
    .where("id", "in", [optionId, other.optionId])
    .execute();
  const { unsolicited } = createBookingHandlers(fixture.deps);
  const open = (quote: (typeof quotes)[number], logIndex: number) => {
    const { authorization_nonce: authorizationNonce, token, payer, receiver, amount } = quote;
    const place = { blockId: "0x1", blockNumber: 1, txHash: "0x2", logIndex };
    const movement = { ...place, authorizationNonce, token, payer, receiver, amount };
    return fixture.db.transaction().execute((db) => unsolicited(db, chain.id, [movement], { isFinal: true }));
  };
  await Promise.all(quotes.map(open));
  expect((await fixture.transfers()).map(({ state }) => state).toSorted()).toEqual(["awaited", "ended"]);
  expect((await attemptsOf(paymentId)).map(({ state }) => state).toSorted()).toEqual(["refused", "verified"]);
});

test("a movement of the accepted transfer's payer and token in another amount becomes an exception", async () => {
  const { paymentId, buyer, push } = await makeAccepted();
  const same = { payer: buyer.toLowerCase(), token: tokenOf(kinds.assets.push) };
  await fixture.db
    .updateTable("transfer")
    .set({ ...same, amount: 1n })
    .execute();
  await push();
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).toBe("processing");
  expect(await newExceptions()).toEqual([-1_000_000n]);
  expect(await fixture.db.selectFrom("failed_booking").select("error").execute()).toEqual([]);
});

test("a failure between the end of the transfer and the new one changes nothing", async () => {
  const { paymentId, push } = await makeAccepted();
  const before = await attemptsOf(paymentId);
  await sql`create function stop() returns trigger language plpgsql as $$ begin raise exception 'stopped'; end $$`.execute(
    fixture.db,
  );
  await sql`create trigger stop before insert on transfer for each row when (new.state = 'awaited')
    execute function stop()`.execute(fixture.db);
  await push();
  await fixture.watch().catch(() => undefined);
  expect(await fixture.transfers()).toMatchObject([{ state: "ready" }]);
  expect(await attemptsOf(paymentId)).toEqual(before);
  expect((await fixture.status(paymentId)).state).toBe("processing");
});
