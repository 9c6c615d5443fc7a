import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { newKey } from "../../../local/networks-document.ts";
import { changeDestination, listDestinations } from "../../../payments/merchants/destinations.ts";
import { reportDestinations } from "../../../payments/merchants/report-destinations.ts";
import type { DepositClaim, Statement } from "../../../signer/protocol.ts";
import { writeStatement } from "../../../signer/statements.ts";
import { startChain } from "../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../support/merchant-fixture.ts";
import { testActor } from "../../support/test-actor.ts";
import { startTestSigner } from "../../support/test-signer.ts";

// A thief of a database role can write rows that the signer cannot read. They must not keep the other rows from it.

const chain = await startChain();
const HOURS_AGO = new Date(Date.now() - 5 * 3_600_000);

async function setUp() {
  const signing = await startTestSigner(chain);
  const fixture = await makeMerchantFixture(chain, { signer: signing.signer });
  const { deps, db, accountId, merchantId, mode } = fixture;
  await reportDestinations(deps);
  const [{ id } = { id: "" }] = unwrap(await listDestinations(deps, { accountId, merchantId, mode }));
  const plant = (text: string) =>
    db
      .insertInto("signed_statement")
      .values({ subject: "dchg_x", text, signer: "thief", signature: "", created_at: HOURS_AGO })
      .execute();
  const address = newKey().address.toLowerCase();
  /** Changes the destination of the merchant, and reports it. */
  const change = async () => {
    const destination = `${chain.id}:${address}`;
    unwrap(await changeDestination(deps, { accountId, merchantId, mode, id, actor: testActor, destination }));
    await reportDestinations(deps);
  };
  const known = () =>
    signing.store
      .prepare("select receiver from destination")
      .all()
      .map(({ receiver }) => receiver);
  const outcomes = async () =>
    (await db.selectFrom("signed_statement").select("outcome").orderBy("id").execute()).map(({ outcome }) => outcome);
  const unreported = async () =>
    (await db.selectFrom("destination_change").select("id").where("reported_at", "is", null).execute()).length;
  return { ...fixture, signing, plant, address, change, known, outcomes, unreported };
}

test("a statement that is too long is refused, and the destinations are reported", async () => {
  const made = await setUp();
  await made.plant("x".repeat(2_001));
  await made.plant("x");
  await made.change();
  expect(made.known()).toContain(made.address);
  expect(await made.outcomes()).toEqual(["refused: unreadable", expect.stringContaining("no statement")]);
  expect(await made.unreported()).toBe(0);
});

test("a statement with a carriage return is refused, and the destinations are reported", async () => {
  const made = await setUp();
  const subject = { action: "approve destination", merchantId: "m", asset: "ASSET", receiver: "r" } as const;
  const text = writeStatement(subject, { deployment: "test", at: new Date() });
  await made.plant(text.replace("ASSET", "\r"));
  await made.change();
  expect(made.known()).toContain(made.address);
  expect(await made.outcomes()).toEqual([expect.stringContaining("refused: ")]);
});

test("a change with a malformed asset is marked, and the other destinations are reported", async () => {
  const made = await setUp();
  await sql`insert into destination_change (id, merchant_id, destination_id, asset, after, state, requester_kind,
      requester_id, created_at, applies_at)
    values ('dchg_x', ${made.merchantId}, 'dst_x', 'x', ${`${chain.id}:${made.address}`}, 'requested', 'key', 'key_x',
      ${HOURS_AGO}, now() + interval '9 days')`.execute(made.db);
  await made.change();
  expect(made.known()).toContain(made.address);
  expect(await made.unreported()).toBe(0);
});

test("a report that is too large for the signer is made in parts", async () => {
  const made = await setUp();
  // A control character takes six bytes in JSON.
  for (let index = 0; index < 100; index++) await made.plant(`${index}${"\u0001".repeat(1_990)}`);
  await made.change();
  expect(made.known()).toContain(made.address);
  expect(await made.outcomes()).toEqual(Array(100).fill(expect.stringContaining("no statement")));
});

test("a report in parts keeps the account that the service pays to and the one that is requested together", async () => {
  const { signer } = await startTestSigner(chain);
  const report = async (receivers: readonly string[], statements: readonly Statement[] = []) => {
    const [first = "", second] = receivers;
    const one = { merchantId: "mrch_1", asset: chain.asset };
    const answer = await signer.claimDestinations({
      destinations: [
        { ...one, receiver: first, state: "applied" },
        ...(second === undefined ? [] : [{ ...one, receiver: second, state: "requested" as const }]),
      ],
      statements: [...statements],
      approvalKeys: [],
      revokedKeys: [],
    });
    return answer?.destinations;
  };
  const receivers = [newKey().address, newKey().address];
  await report([newKey().address]);
  const before = await report(receivers);
  expect(before).toMatchObject([{ state: "waiting" }, { state: "waiting" }]);
  await sleep(5);
  expect(await report(receivers, [{ text: "x".repeat(2_001), signer: "ana", signature: "" }])).toEqual(before);
});

test("what the signer cannot read is refused alone, also in a claim of deposits", async () => {
  const { signer } = await startTestSigner(chain);
  const claim: DepositClaim = {
    asset: chain.asset,
    merchantId: "mrch_1",
    paymentId: "pay_1",
    txHash: `0x${"ab".repeat(32)}`,
    logIndex: 0,
  };
  expect(await signer.claimDeposits([claim, { ...claim, asset: "x" }, claim])).toMatchObject([
    { reason: "deposit_not_found" },
    { reason: "invalid_request" },
    { reason: "deposit_not_found" },
  ]);
  const destination = {
    merchantId: "mrch_1",
    asset: chain.asset,
    receiver: newKey().address,
    state: "applied",
  } as const;
  const statement: Statement = { text: "x", signer: "ana", signature: "" };
  const answer = await signer.claimDestinations({
    destinations: [{ ...destination, asset: "x" }, destination],
    statements: [{ ...statement, text: "x".repeat(2_001) }, statement],
    approvalKeys: [{ merchantId: "mrch_1", publicKey: "x" }],
    revokedKeys: [{ merchantId: "mrch_1", publicKey: "x" }],
  });
  expect(answer).toMatchObject({
    destinations: [{ state: "rejected" }, { state: "applied" }],
    statements: [
      { ok: false, detail: "unreadable" },
      { ok: false, detail: expect.stringContaining("no statement") },
    ],
  });
});
