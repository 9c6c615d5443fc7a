import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { expect, test } from "vitest";
import { listPaymentDeposits } from "../../../db/queries/deposits.ts";
import { listExceptions, returnException } from "../../../payments/accounting/resolve-exceptions.ts";
import { approveReturn } from "../../../payments/payouts/approve-return.ts";
import { toClaim } from "../../../payments/payouts/request-payouts.ts";
import { makeOperators } from "../../support/approving-operators.ts";
import { fundBuyer, sendUsdc, startChain, usdcBalance } from "../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../support/merchant-fixture.ts";
import { testActor } from "../../support/test-actor.ts";
import { startTestSigner } from "../../support/test-signer.ts";

const chain = await startChain();
const signing = await startTestSigner(chain);
const fixture = await makeMerchantFixture(chain, { signer: signing.signer });
const { deployment } = fixture.deps;

/** Returns an operator's key, and how the limits file names it. */
function newOperator(name: string) {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const { x = "" } = publicKey.export({ format: "jwk" });
  return { name, key: privateKey, listed: { name, publicKey: Buffer.from(x, "base64url").toString("hex") } };
}

const [alice, bob, mallory] = [newOperator("alice"), newOperator("bob"), newOperator("mallory")];
await signing.setLimits({ file: { operators: [alice.listed, bob.listed] } });

/** Sends money without a payment to the treasury, and books its return. Returns the refund's id. */
async function bookReturn(amount: bigint) {
  const sender = await fundBuyer(chain, amount);
  const txHash = await sendUsdc(chain, sender, chain.keys.treasury.address, amount);
  await fixture.watch();
  await fixture.watch();
  const id = (await listExceptions(fixture.deps, 100)).at(-1)?.id ?? 0;
  unwrap(await returnException(fixture.deps, { actor: testActor, id }));
  const refund = await fixture.db
    .selectFrom("refund")
    .select("id")
    .where("exception_id", "=", id)
    .executeTakeFirstOrThrow();
  const verified = { asset: chain.asset, amount, receiver: sender.address, txHash };
  return { sender, refundId: refund.id, verified };
}
type Booked = Awaited<ReturnType<typeof bookReturn>>;

/** Approves what the chain shows of a return. */
const approve = ({ refundId, verified }: Booked, { name, key }: { name: string; key: KeyObject }) =>
  approveReturn(
    { ...fixture.deps, now: signing.clock.now },
    { refundId, verified, by: { name, key, deployment }, actor: testActor },
  );

test("money without a payment returns to its sender when two operators have approved it", async () => {
  const booked = await bookReturn(3_000_000n);
  const { sender, refundId } = booked;
  expect(await fixture.refund(refundId)).toEqual(["approval_missing"]);
  unwrap(await approve(booked, alice));
  unwrap(await approve(booked, alice));
  expect(await fixture.refund(refundId)).toEqual(["approval_missing"]);
  unwrap(await approve(booked, { name: "bob", key: mallory.key }));
  expect(await fixture.refund(refundId)).toEqual(["approval_missing"]);

  unwrap(await approve(booked, bob));
  expect(await fixture.refund(refundId)).toEqual(["begun"]);
  await fixture.relay();
  await fixture.watch();
  expect(await usdcBalance(chain, sender.address)).toBe(3_000_000n);
  const entry = signing.store.prepare("select actor_id, subject from audit_entry where action = 'return.signed'").get();
  expect(entry).toMatchObject({ actor_id: "alice, bob" });
});

test("an approved return goes to no other account and for no other amount, also when the rows say so", async () => {
  const booked = await bookReturn(2_000_000n);
  const { refundId } = booked;
  unwrap(await approve(booked, alice));
  unwrap(await approve(booked, bob));
  await fixture.db.updateTable("refund").set({ amount: 2_000_001n }).where("id", "=", refundId).execute();
  expect(await fixture.refund(refundId)).toEqual(["funds_short"]);
  const receiver = "0x00000000000000000000000000000000000000aa";
  await fixture.db.updateTable("refund").set({ amount: 2_000_000n, receiver }).where("id", "=", refundId).execute();
  expect(await fixture.refund(refundId)).toEqual(["receiver_not_payer"]);
});

test("an operator approves no other return than the one that they verified", async () => {
  const booked = await bookReturn(2_000_000n);
  const { refundId } = booked;
  const differing = {
    amount: 1_999_999n,
    receiver: "0x00000000000000000000000000000000000000aa",
    asset: `${chain.id}/erc20:0x00000000000000000000000000000000000000bb`,
    txHash: `0x${"0".repeat(64)}`,
  };
  for (const [name, value] of Object.entries(differing)) {
    const verified = { ...booked.verified, [name]: value };
    const message = expect.stringContaining(`${name}: `);
    expect(await approve({ ...booked, verified }, alice)).toMatchObject({ ok: false, code: "invalid_state", message });
  }
  const stored = fixture.db.selectFrom("signed_statement").select("id").where("subject", "=", refundId);
  expect(await stored.execute()).toEqual([]);
});

test("the deposit of a payment is not returned by the approval of operators, but refunded", async () => {
  const paymentId = await fixture.pay(await fundBuyer(chain), 100n);
  expect(await fixture.settle((await fixture.settlementOf(paymentId)).id)).toEqual(["begun"]);
  const deposit = signing.store
    .prepare("select tx_hash, log_index, payer from deposit where payment_id = ?")
    .get(paymentId);
  const [result] = await signing.signer.signPayouts([
    {
      kind: "return",
      asset: chain.asset,
      amount: 1_000_000n,
      receiver: String(deposit?.["payer"]),
      txHash: String(deposit?.["tx_hash"]),
      logIndex: Number(deposit?.["log_index"]),
      approvals: [],
    },
  ]);
  expect(result).toMatchObject({ ok: false, reason: "deposit_mismatch" });
});

test("money that was returned to its sender is no deposit of a payment afterwards", async () => {
  const operators = makeOperators(deployment);
  await signing.setLimits({ file: { operators: operators.listed } });
  const buyer = await fundBuyer(chain);
  const paymentId = await fixture.pay(buyer, 100n);
  const rows = await listPaymentDeposits(fixture.db, [paymentId]);
  const [{ txHash, logIndex } = { txHash: "", logIndex: -1 }] = rows.map(toClaim);
  const of = { asset: chain.asset, amount: 1_000_000n, receiver: buyer.address.toLowerCase(), txHash, logIndex };
  const approvals = operators.approve({ action: "return movement", ...of });
  expect(await signing.signer.signPayouts([{ kind: "return", ...of, approvals }])).toMatchObject([{ ok: true }]);
  expect(await signing.signer.claimDeposits(rows.map(toClaim))).toMatchObject([
    { ok: false, reason: "deposit_mismatch" },
  ]);
});

test("a lower amount that operators approve for a return is recorded before it is signed", async () => {
  const operators = makeOperators(deployment);
  await signing.setLimits({ file: { operators: operators.listed } });
  const sender = await fundBuyer(chain, 2_000_000n);
  const txHash = await sendUsdc(chain, sender, chain.keys.treasury.address, 2_000_000n);
  const { logs } = await chain.client.getTransactionReceipt({ hash: txHash });
  const place = { txHash, logIndex: logs[0]?.logIndex ?? -1 };
  const of = { asset: chain.asset, receiver: sender.address.toLowerCase(), ...place };
  for (const amount of [2_000_000n, 1_500_000n, 1_500_000n]) {
    const approvals = operators.approve({ action: "return movement", ...of, amount });
    expect(await signing.signer.signPayouts([{ kind: "return", ...of, amount, approvals }])).toMatchObject([
      { ok: true },
    ]);
  }
  expect(signing.payouts().slice(-2)).toMatchObject([
    { kind: "return", amount: "2000000", counted: "2000000" },
    { kind: "return", amount: "1500000", counted: "0" },
  ]);
  const entries = signing.store
    .prepare("select after from audit_entry where action = 'return.signed' and subject = ? order by id")
    .all(`${place.txHash}/${place.logIndex}`);
  expect(entries.map(({ after }) => JSON.parse(String(after)).amount)).toEqual(["2000000", "1500000"]);
});

// The following test advances the signer's clock.

test("approvals of a return count for a day, operators approve it once more, and what was signed is signed again at any time", async () => {
  await signing.setLimits({ file: { operators: [alice.listed, bob.listed] } });
  const booked = await bookReturn(4_000_000n);
  const { refundId } = booked;
  const approveOften = async () => {
    for (let time = 0; time < 6; time += 1) {
      for (const operator of [alice, bob]) unwrap(await approve(booked, operator));
      signing.clock.advance(1);
    }
  };
  await approveOften();
  signing.clock.advance(25 * 3_600_000);
  expect(await fixture.refund(refundId)).toEqual(["approval_missing"]);
  expect(signing.lines.join("")).toContain("the approvals of alice, bob are older than a day");
  await approveOften();
  expect(await fixture.refund(refundId)).toEqual(["begun"]);

  signing.clock.advance(25 * 3_600_000);
  const { verified: sent } = booked;
  const query = fixture.db.selectFrom("signed_statement").select(["text", "signer", "signature"]);
  const approvals = await query.where("subject", "=", refundId).orderBy("id", "desc").limit(10).execute();
  const group = fixture.db.selectFrom("ledger_group").select("log_index").where("tx_hash", "=", sent.txHash);
  const logIndex = (await group.executeTakeFirstOrThrow()).log_index ?? -1;
  const payout = { kind: "return" as const, ...sent, receiver: sent.receiver.toLowerCase(), logIndex, approvals };
  expect(await signing.signer.signPayouts([payout])).toMatchObject([{ ok: true }]);
});
