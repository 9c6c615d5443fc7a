import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newKey } from "../../../local/networks-document.ts";
import { makeScratch } from "../../../local/scratch-folder.ts";
import { registerApprovalKey, revokeApprovalKey } from "../../../payments/merchants/approval-keys.ts";
import { decideChange } from "../../../payments/merchants/decide-changes.ts";
import { changeDestination, listDestinations } from "../../../payments/merchants/destinations.ts";
import { hasUnreportedDestinations, reportDestinations } from "../../../payments/merchants/report-destinations.ts";
import { applyDueClaims } from "../../../signer/apply-due-claims.ts";
import type { DestinationsRequest } from "../../../signer/protocol.ts";
import { signText, writeStatement } from "../../../signer/statements.ts";
import { adminIn } from "../../support/admin.ts";
import { type ApprovalKey, makeApprovalKey, signStatement } from "../../support/approval-key.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { fundBuyer, networksFileFor, startChain, usdcBalance } from "../../support/evm-chain.ts";
import { execute } from "../../support/execute-sql.ts";
import { makeMerchantFixture, unwrap } from "../../support/merchant-fixture.ts";
import { testActor } from "../../support/test-actor.ts";
import { createDatabase } from "../../support/test-database.ts";
import { startTestSigner } from "../../support/test-signer.ts";

// The signer waits by its own clock, and follows only decisions that an operator or an approver has signed.

const chain = await startChain();
const databaseUrl = await createDatabase();
const signing = await startTestSigner(chain);
const operator = makeApprovalKey();
await signing.setLimits({ file: { operators: [{ name: "ana", publicKey: operator.publicKey }] } });

const asSuperuser = (...statements: string[]) =>
  execute(databaseUrl, `set session_replication_role = replica; ${statements.join("; ")}`);

/** A merchant that has been paid through the signer, with a payment that is not paid out yet. */
async function setUp({ destinationWaitingHours = 72 } = {}) {
  const fixture = await makeMerchantFixture(chain, { databaseUrl, signer: signing.signer, destinationWaitingHours });
  const { deps, accountId, merchantId, mode } = fixture;
  const owner = { accountId, merchantId, mode };
  const report = () => reportDestinations(deps);
  await report();
  const settle = async (paymentId: string) => {
    const [outcome] = await fixture.settle((await fixture.settlementOf(paymentId)).id);
    await fixture.relay();
    await fixture.watch();
    return outcome;
  };
  expect(await settle(await fixture.pay(await fundBuyer(chain)))).toBe("begun");
  const paymentId = await fixture.pay(await fundBuyer(chain));
  const { address } = newKey();
  const [{ id } = { id: "" }] = unwrap(await listDestinations(deps, owner));
  const change = async () => {
    const destination = `${chain.id}:${address}`;
    const changed = await changeDestination(deps, { ...owner, id, actor: testActor, destination });
    return unwrap(changed).pendingChange?.changeId ?? "";
  };
  const outcomes = async () => {
    const rows = await fixture.db.selectFrom("signed_statement").selectAll().orderBy("id").execute();
    return rows.filter(({ text }) => text.includes(merchantId)).map(({ outcome }) => outcome);
  };
  return { fixture, deps, owner, id, report, settle: () => settle(paymentId), address, change, outcomes };
}

const decide = (made: Awaited<ReturnType<typeof setUp>>, changeId: string, decision: "approve" | "reject") => {
  const verified = { merchantId: made.owner.merchantId, asset: chain.asset, receiver: made.address };
  const by = { name: "ana", key: operator.privateKey, deployment: made.deps.networks.deployment, verified };
  return decideChange(made.deps, { ...made.owner, changeId, actor: testActor, decision, by });
};

/** SQL that inserts an approval key which has counted for a long time by the service's own clock. */
const insertKey = ({ owner }: Awaited<ReturnType<typeof setUp>>, { publicKey }: ApprovalKey) =>
  `insert into approval_key (merchant_id, public_key, registrar_kind, registrar_id, created_at, applies_at)
    values ('${owner.merchantId}', '${publicKey}', 'key', 'key_planted', now() - interval '9 days', now() - interval '6 days')`;

/** Decides as the api does for a merchant's signed statement. */
const decideBy = (
  made: Awaited<ReturnType<typeof setUp>>,
  key: ApprovalKey,
  { changeId, decision, at = new Date() }: { changeId: string; decision: "approve" | "reject"; at?: Date },
) => {
  const { deployment } = made.deps.networks;
  const subject = { action: `${decision} destination`, merchantId: made.owner.merchantId, asset: chain.asset } as const;
  const statement = signStatement(key, { ...subject, receiver: made.address }, { deployment, at });
  const by = { statement, deployment };
  const now = () => at;
  return decideChange({ ...made.deps, now }, { ...made.owner, changeId, actor: testActor, decision, by });
};

test("an approval that an operator has signed moves the signer, and the payout goes to the new account", async () => {
  const made = await setUp();
  const changeId = await made.change();
  await made.report();
  unwrap(await decide(made, changeId, "approve"));
  await made.report();
  expect(await made.outcomes()).toEqual(["approved"]);
  expect(await made.settle()).toBe("begun");
  expect(await usdcBalance(chain, made.address)).toBe(1_000_000n);
});

test("an approval in the rows alone does not move the signer, and the money stays in the treasury", async () => {
  const made = await setUp();
  const changeId = await made.change();
  await made.report();
  unwrap(await decideChange(made.deps, { ...made.owner, changeId, actor: testActor, decision: "approve" }));
  await made.report();
  expect(await made.settle()).toBe("destination_waiting");
  expect(await usdcBalance(chain, made.address)).toBe(0n);
});

test("an account without a waiting period still waits for that of the signer, until an operator signs an approval", async () => {
  const made = await setUp({ destinationWaitingHours: 0 });
  await made.change();
  await made.report();
  expect(await made.settle()).toBe("destination_waiting");
  const rows = await made.fixture.db
    .selectFrom("destination_change")
    .select("id")
    .orderBy("created_at", "desc")
    .execute();
  unwrap(await decide(made, rows[0]?.id ?? "", "approve"));
  await made.report();
  expect(await made.settle()).toBe("begun");
});

test("a rejection that an operator has signed reaches the signer, and payouts go to the old account", async () => {
  const made = await setUp();
  const changeId = await made.change();
  await made.report();
  unwrap(await decide(made, changeId, "reject"));
  await made.report();
  expect(await made.settle()).toBe("begun");
  expect(await usdcBalance(chain, made.fixture.destination)).toBe(2_000_000n);
  expect((await made.outcomes()).every((outcome) => !outcome?.startsWith("refused"))).toBe(true);
});

test("a superuser who inserts an applied change and the destination moves the signer in no way", async () => {
  const made = await setUp();
  const { merchantId } = made.owner;
  await asSuperuser(
    `insert into destination_change (id, merchant_id, destination_id, asset, after, state, requester_kind, requester_id,
      created_at, applies_at, applied_at) values ('dchg_planted${merchantId}', '${merchantId}', '${made.id}', '${chain.asset}',
      '${chain.id}:${made.address}', 'applied', 'operator', 'planted', now() - interval '9 days', now() - interval '6 days',
      now() - interval '6 days')`,
    `update settlement_destination set destination = '${chain.id}:${made.address}' where id = '${made.id}'`,
  );
  await made.report();
  expect(await made.settle()).toBe("destination_waiting");
  expect(await usdcBalance(chain, made.address)).toBe(0n);
});

test("a superuser who inserts an approval without a signature, or by another key, moves the signer in no way", async () => {
  const made = await setUp();
  const changeId = await made.change();
  await made.report();
  const { merchantId } = made.owner;
  const subject = { action: "approve destination", merchantId, asset: chain.asset, receiver: made.address } as const;
  const text = writeStatement(subject, { deployment: made.deps.networks.deployment, at: new Date() });
  const forged = signText(makeApprovalKey().privateKey, text);
  await asSuperuser(
    ...["", forged].map(
      (signature, index) =>
        `insert into signed_statement (subject, text, signer, signature, created_at)
          values ('${changeId}', E'${text.replaceAll("\n", "\\n")}${index === 0 ? "" : " "}', 'ana', '${signature}', now())`,
    ),
    `update destination_change set state = 'applied', applied_at = now() where id = '${changeId}'`,
    `update settlement_destination set destination = '${chain.id}:${made.address}' where id = '${made.id}'`,
  );
  await made.report();
  expect(await made.outcomes()).toEqual([expect.stringContaining("refused"), expect.stringContaining("refused")]);
  expect(await made.settle()).toBe("destination_waiting");
});

test("a superuser who inserts an approval key does not shorten the waiting period", async () => {
  const made = await setUp();
  const changeId = await made.change();
  const thief = makeApprovalKey();
  await asSuperuser(insertKey(made, thief));
  await made.report();
  unwrap(await decideBy(made, thief, { changeId, decision: "approve" }));
  await made.report();
  expect(await made.outcomes()).toEqual(["refused: the key is within its waiting period"]);
  expect(await made.settle()).toBe("destination_waiting");
  expect(signing.lines.join("")).toContain("new approval key waits");
});

test("a report waits while the signer is down, and arrives when it is up again", async () => {
  const made = await setUp();
  await signing.stop();
  const changeId = await made.change();
  await made.report();
  const unreported = made.fixture.db.selectFrom("destination_change").select("reported_at").where("id", "=", changeId);
  expect(await unreported.executeTakeFirst()).toEqual({ reported_at: null });
  await signing.start();
  await made.report();
  expect(await unreported.executeTakeFirst()).not.toEqual({ reported_at: null });
});

/** Writes a new operator's key by the command line, and lists it in the limits file as bob's. Returns `destinations approve`. */
async function newOperatorFile(made: Awaited<ReturnType<typeof setUp>>) {
  const folder = await makeScratch("operator-key");
  addCleanup(() => rm(folder, { recursive: true, force: true }));
  const admin = adminIn({ DATABASE_URL: databaseUrl, NETWORKS_FILE: await networksFileFor(chain) });
  const file = join(folder, "bob.key");
  const { publicKey } = JSON.parse((await admin("operator-keys", "new", file, "--json")).stdout) as {
    publicKey: string;
  };
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await admin("operator-keys", "new", file)).toMatchObject({ code: 1 });
  const people = [
    { name: "ana", publicKey: operator.publicKey },
    { name: "bob", publicKey },
  ];
  await signing.setLimits({ file: { operators: people } });
  const verified = ["--merchant", made.owner.merchantId, "--asset", chain.asset, "--receiver", made.address];
  const approve = (changeId: string, ...args: string[]) =>
    admin("destinations", "approve", changeId, "--sign", file, ...args);
  return { approve, verified };
}

test("an operator signs an approval with the key file that the command line made, and the signer follows it", async () => {
  const made = await setUp();
  const changeId = await made.change();
  const { approve, verified } = await newOperatorFile(made);
  expect(await approve(changeId, ...verified)).toMatchObject({ code: 2 });
  expect(await approve(changeId, "--as", "bob")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--sign requires --merchant, --asset and --receiver"),
  });
  expect(await approve(changeId, "--as", "bob", ...verified)).toMatchObject({ code: 0 });
  await made.report();
  expect(await made.outcomes()).toEqual(["approved"]);
  expect(await made.settle()).toBe("begun");
});

test("an operator signs no change of which a superuser has rewritten the row since it was listed", async () => {
  const made = await setUp();
  const changeId = await made.change();
  const { approve, verified } = await newOperatorFile(made);
  const row = (values: string) => asSuperuser(`update destination_change set ${values} where id = '${changeId}'`);
  const thief = newKey().address;
  await row(`after = '${chain.id}:${thief}'`);
  expect(await approve(changeId, "--as", "bob", ...verified)).toMatchObject({
    code: 1,
    stderr: `receiver: the change names ${thief.toLowerCase()}, which you did not verify\n`,
  });
  await row("after = null");
  expect(await approve(changeId, "--as", "bob", ...verified)).toMatchObject({
    code: 1,
    stderr: "receiver: the change is a deletion, which is not signed\n",
  });
  await row(`after = '${chain.id}:${made.address}', asset = '${chain.id}/erc20:${thief.toLowerCase()}'`);
  expect(await approve(changeId, "--as", "bob", ...verified)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("asset: the change names "),
  });
  expect(await made.outcomes()).toEqual([]);
});

// The following tests advance the signer's clock.

test("a superuser who takes back a revocation gives the key no power in the signer", async () => {
  const made = await setUp();
  const leaked = makeApprovalKey();
  const { merchantId } = made.owner;
  await asSuperuser(insertKey(made, leaked));
  await made.report();
  signing.clock.advance(73 * 3_600_000);
  applyDueClaims(signing.deps);
  unwrap(await revokeApprovalKey(made.deps, { ...made.owner, publicKey: leaked.publicKey, actor: testActor }));
  await made.report();
  await asSuperuser(`delete from approval_key where merchant_id = '${merchantId}'`, insertKey(made, leaked));
  const changeId = await made.change();
  await made.report();
  unwrap(await decideBy(made, leaked, { changeId, decision: "approve", at: signing.clock.now() }));
  await made.report();
  expect(await made.outcomes()).toEqual(["refused: the key is revoked"]);
  expect(await made.settle()).toBe("destination_waiting");
});

test("a merchant's signed rejection counts in the signer after a superuser has revoked its key", async () => {
  const made = await setUp();
  const key = makeApprovalKey();
  await asSuperuser(insertKey(made, key));
  await made.report();
  signing.clock.advance(73 * 3_600_000);
  applyDueClaims(signing.deps);
  await asSuperuser("update approval_key set revoked_at = now(), reported_at = null");
  const changeId = await made.change();
  await made.report();
  unwrap(await decideBy(made, key, { changeId, decision: "reject", at: signing.clock.now() }));
  await made.report();
  expect((await made.outcomes()).every((outcome) => !outcome?.startsWith("refused"))).toBe(true);
  expect(await made.settle()).toBe("begun");
  expect(await usdcBalance(chain, made.address)).toBe(0n);
});

test("a key is reported again after a day, as it is then, so that a signer with a restored store learns of a revocation", async () => {
  const made = await setUp();
  const { publicKey } = makeApprovalKey();
  const key = { ...made.owner, publicKey, actor: testActor };
  unwrap(await registerApprovalKey(made.deps, key));
  unwrap(await revokeApprovalKey(made.deps, key));
  await made.report();
  expect(await hasUnreportedDestinations(made.deps)).toBe(false);
  const later = { ...made.deps, now: () => new Date(made.deps.now().getTime() + 25 * 3_600_000) };
  expect(await hasUnreportedDestinations(later)).toBe(true);
  const requests: DestinationsRequest[] = [];
  const claimDestinations = async (request: DestinationsRequest) => {
    requests.push(request);
    return signing.signer.claimDestinations(request);
  };
  await reportDestinations({ ...later, signer: { claimDestinations } });
  expect(requests.flatMap(({ revokedKeys }) => revokedKeys)).toContainEqual({
    merchantId: made.owner.merchantId,
    publicKey,
  });
});
