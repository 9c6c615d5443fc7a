import type { KeyObject } from "node:crypto";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { createLog } from "../../../runtime/log.ts";
import { createMetrics } from "../../../runtime/metrics.ts";
import { applyDueClaims } from "../../../signer/apply-due-claims.ts";
import { workerActor } from "../../../signer/audit/entries.ts";
import { claimDestinations } from "../../../signer/claim-destinations.ts";
import { createStore } from "../../../signer/create-store.ts";
import { findDestinationRefusal, listWaiting } from "../../../signer/destinations.ts";
import type { Limits } from "../../../signer/limits.ts";
import type { Statement } from "../../../signer/protocol.ts";
import { insertDeposits } from "../../../signer/records.ts";
import { recordRetirement } from "../../../signer/retired-treasuries.ts";
import { type StatementSubject, signText, writeStatement } from "../../../signer/statements.ts";
import { inStoreTransaction } from "../../../signer/store.ts";
import { makeApprovalKey } from "../../support/approval-key.ts";

const asset = `eip155:31337/erc20:0x${"a1".repeat(20)}`;
const [old, fresh, third] = ["d1", "d2", "d3"].map((byte) => `0x${byte.repeat(20)}`) as [string, string, string];
const merchantId = "mrch_1";
const HOUR = 3_600_000;

const operator = makeApprovalKey();
const approver = makeApprovalKey();

/** A signer whose merchant has one destination that applies, and one that waits. */
function setUp() {
  let now = Date.parse("2026-03-01T00:00:00Z");
  let limits: Limits = {
    paused: false,
    destinationWaitingHours: 72,
    assets: {},
    operators: [{ name: "ana", publicKey: operator.publicKey }],
  };
  const setPaused = (paused: boolean) => {
    limits = { ...limits, paused };
  };
  const store = createStore(":memory:", { command: "init", at: new Date(now) });
  const deps = {
    store,
    readLimits: () => limits,
    deployment: "test",
    caller: workerActor("socket"),
    log: createLog({ level: "silent", role: "test" }),
    metrics: createMetrics(new Registry(), "signer"),
    now: () => new Date(now),
  };
  const claim = (receiver: string, statements: Statement[] = [], keys: string[] = [], revoked: string[] = []) => {
    const approvalKeys = keys.map((publicKey) => ({ merchantId, publicKey }));
    const answer = claimDestinations(deps, {
      destinations: [{ merchantId, asset, receiver, state: "applied" }],
      statements,
      approvalKeys,
      revokedKeys: revoked.map((publicKey) => ({ merchantId, publicKey })),
    });
    if (!answer) throw new Error("the signer has no limits");
    return { state: answer.destinations[0]?.state, statements: answer.statements };
  };
  const sign = (
    key: KeyObject,
    signer: string,
    {
      receiver = fresh,
      action = "approve destination" as const,
      deployment = "test",
      of = asset,
    }: {
      receiver?: string;
      action?: "approve destination" | "reject destination";
      deployment?: string;
      of?: string;
    } = {},
  ): Statement => {
    const subject: StatementSubject = { action, merchantId, asset: of, receiver };
    return signSubject(key, signer, subject, deployment);
  };
  const signSubject = (key: KeyObject, signer: string, subject: StatementSubject, deployment = "test"): Statement => {
    const text = writeStatement(subject, { deployment, at: deps.now() });
    return { text, signer, signature: signText(key, text) };
  };
  const revocation = (key: KeyObject, signer: string, publicKey: string) =>
    signSubject(key, signer, { action: "revoke approval key", merchantId, publicKey });
  const refusalOf = (receiver: string) => findDestinationRefusal(store, { merchantId, asset, receiver });
  const first = claim(old);
  /** Lets time pass while the signer runs, or while it is stopped. */
  const advance = (ms: number, { isRunning = true } = {}) => {
    now += ms;
    if (isRunning) applyDueClaims(deps);
  };
  /** A merchant's key that counts. */
  const registerApprover = () => {
    claim(old, [], [approver.publicKey]);
    advance(72 * HOUR);
  };
  const claimOf = (wanted: string, of = merchantId) =>
    claimDestinations(deps, {
      destinations: [{ merchantId: of, asset: wanted, receiver: fresh, state: "applied" }],
      statements: [],
      approvalKeys: [],
      revokedKeys: [],
    })?.destinations[0]?.state;
  return { deps, store, claim, claimOf, sign, revocation, refusalOf, first, advance, setPaused, registerApprover };
}

test("the first destination applies at once, and a later one after the waiting period of the signer's own clock", () => {
  const { claim, refusalOf, first, advance } = setUp();
  expect(first.state).toBe("applied");
  expect(claim(fresh).state).toBe("waiting");
  expect([refusalOf(old), refusalOf(fresh)]).toEqual([undefined, "destination_waiting"]);
  advance(71 * HOUR);
  expect(claim(fresh).state).toBe("waiting");
  advance(HOUR);
  expect([refusalOf(old), refusalOf(fresh)]).toEqual(["destination_waiting", undefined]);
});

test("a report of the destination that applies ends the claim that waits, and its time never comes", () => {
  const { claim, refusalOf, advance } = setUp();
  claim(fresh);
  expect(claim(old).state).toBe("applied");
  advance(100 * HOUR);
  expect([refusalOf(old), refusalOf(fresh)]).toEqual([undefined, "destination_unapproved"]);
  expect(claim(fresh).state).toBe("waiting");
});

test("another claim replaces the one that waits, and waits for the whole period", () => {
  const { claim, refusalOf, advance } = setUp();
  claim(fresh);
  advance(71 * HOUR);
  claim(third);
  advance(71 * HOUR);
  expect([refusalOf(old), refusalOf(fresh), refusalOf(third)]).toEqual([
    undefined,
    "destination_unapproved",
    "destination_waiting",
  ]);
});

test("destinations of one report wait side by side, each since it was first reported", () => {
  const { deps, claim, refusalOf, advance } = setUp();
  const report = (applied: string, requested: string) =>
    claimDestinations(deps, {
      destinations: [
        { merchantId, asset, receiver: applied, state: "applied" },
        { merchantId, asset, receiver: requested, state: "requested" },
      ],
      statements: [],
      approvalKeys: [],
      revokedKeys: [],
    })?.destinations.map(({ state }) => state);
  expect(claim(fresh).state).toBe("waiting");
  advance(HOUR);
  for (let times = 0; times < 2; times += 1) expect(report(fresh, third)).toEqual(["waiting", "waiting"]);
  expect(listWaiting(deps.store).map(({ receiver }) => receiver)).toEqual([fresh, third]);
  advance(71 * HOUR);
  expect([refusalOf(old), refusalOf(fresh), refusalOf(third)]).toEqual([
    "destination_waiting",
    undefined,
    "destination_waiting",
  ]);
  // A requested destination waits as long, and applies when the service pays to it.
  advance(HOUR);
  expect([refusalOf(fresh), refusalOf(third)]).toEqual([undefined, "destination_waiting"]);
  expect(claim(third).state).toBe("applied");
});

test("a statement that an operator of the limits file has signed approves a destination, once", () => {
  const { claim, sign, refusalOf, advance } = setUp();
  claim(fresh);
  const approval = sign(operator.privateKey, "ana");
  expect(claim(fresh, [approval]).statements).toEqual([{ ok: true, detail: "approved" }]);
  expect(refusalOf(fresh)).toBeUndefined();
  // The merchant leaves the account. A copy of the old statement does not bring it back.
  advance(HOUR);
  claim(third, [sign(operator.privateKey, "ana", { receiver: third })]);
  expect(refusalOf(third)).toBeUndefined();
  expect(claim(fresh, [approval]).state).toBe("waiting");
});

test("a statement that an operator has signed rejects a destination, whose time then never comes", () => {
  const { claim, sign, refusalOf, advance } = setUp();
  const rejection = sign(operator.privateKey, "ana", { action: "reject destination" });
  expect(claim(fresh, [rejection]).state).toBe("rejected");
  advance(100 * HOUR);
  expect(refusalOf(fresh)).toBe("destination_unapproved");
});

test.each([
  ["signed by another key", (made: ReturnType<typeof setUp>) => made.sign(approver.privateKey, "ana")],
  ["of an unknown signer", (made: ReturnType<typeof setUp>) => made.sign(operator.privateKey, "bob")],
  [
    "without a signature",
    (made: ReturnType<typeof setUp>) => ({ ...made.sign(operator.privateKey, "ana"), signature: "" }),
  ],
  [
    "whose receiver was changed",
    (made: ReturnType<typeof setUp>) => {
      const signed = made.sign(operator.privateKey, "ana", { receiver: third });
      return { ...signed, text: signed.text.replace(third, fresh) };
    },
  ],
  [
    "about another receiver",
    (made: ReturnType<typeof setUp>) => made.sign(operator.privateKey, "ana", { receiver: third }),
  ],
  [
    "for another deployment",
    (made: ReturnType<typeof setUp>) => made.sign(operator.privateKey, "ana", { deployment: "b" }),
  ],
  [
    "older than a day",
    (made: ReturnType<typeof setUp>) => {
      const signed = made.sign(operator.privateKey, "ana");
      made.advance(25 * HOUR);
      return signed;
    },
  ],
  [
    "of an approval key that the database has just invented",
    (made: ReturnType<typeof setUp>) => {
      made.claim(fresh, [], [approver.publicKey]);
      return made.sign(approver.privateKey, approver.publicKey);
    },
  ],
])("a statement %s approves nothing", (_what, make) => {
  const made = setUp();
  made.claim(fresh);
  const statement = make(made);
  expect(made.claim(fresh, [statement]).statements).toMatchObject([{ ok: false }]);
  expect(made.refusalOf(fresh)).toBe("destination_waiting");
});

test("an approval key counts after the waiting period since its first report, for its own merchant only", () => {
  const { deps, claim, sign, refusalOf, advance } = setUp();
  claim(old, [], [approver.publicKey]);
  advance(72 * HOUR);
  const approval = sign(approver.privateKey, approver.publicKey);
  expect(claim(fresh, [approval]).statements).toEqual([{ ok: true, detail: "approved" }]);
  expect(refusalOf(fresh)).toBeUndefined();
  const other = { merchantId: "mrch_2", asset, receiver: old };
  const state = "applied" as const;
  claimDestinations(deps, { destinations: [{ ...other, state }], statements: [], approvalKeys: [], revokedKeys: [] });
  const subject = { action: "approve destination", ...other, receiver: fresh } as const;
  const text = writeStatement(subject, { deployment: "test", at: deps.now() });
  const foreign = { text, signer: approver.publicKey, signature: signText(approver.privateKey, text) };
  const answer = claimDestinations(deps, {
    destinations: [{ ...other, receiver: fresh, state }],
    statements: [foreign],
    approvalKeys: [],
    revokedKeys: [],
  });
  expect(answer?.statements).toEqual([{ ok: false, detail: "the key may not decide about this merchant" }]);
});

test("what the store has recorded about destinations can be neither changed nor deleted", () => {
  const { store, claim, sign } = setUp();
  claim(fresh, [sign(operator.privateKey, "ana")], [approver.publicKey], [approver.publicKey]);
  for (const table of ["destination", "destination_event", "approval_key", "approval_key_event"])
    for (const statement of [`update ${table} set id = id`, `delete from ${table}`])
      expect(() => store.exec(statement)).toThrow(/append-only/);
});

test("a receiver that a statement has rejected applies only by an approval, however often it is claimed", () => {
  const { claim, sign, advance, refusalOf } = setUp();
  expect(claim(fresh, [sign(operator.privateKey, "ana", { action: "reject destination" })]).statements).toMatchObject([
    { detail: "rejected" },
  ]);
  expect(claim(fresh).state).toBe("waiting");
  advance(1_000 * HOUR);
  expect(refusalOf(fresh)).toBe("destination_waiting");
  claim(fresh, [sign(operator.privateKey, "ana")]);
  expect(refusalOf(fresh)).toBeUndefined();
});

test("a merchant's key, which may have leaked, does not undo an operator's approval by a rejection of a later time", () => {
  const { deps, claim, sign, refusalOf, registerApprover } = setUp();
  registerApprover();
  claim(fresh, [sign(approver.privateKey, approver.publicKey, { action: "reject destination" })]);
  const approval = sign(operator.privateKey, "ana");
  const later = { ...deps, now: () => new Date(deps.now().getTime() + 60_000) };
  const subject: StatementSubject = { action: "reject destination", merchantId, asset, receiver: fresh };
  const text = writeStatement(subject, { deployment: "test", at: later.now() });
  const rejection = { text, signer: approver.publicKey, signature: signText(approver.privateKey, text) };
  claim(fresh, [rejection]);
  claim(fresh, [approval]);
  expect(refusalOf(fresh)).toBeUndefined();
});

test("a statement may spell the asset as wallets do", () => {
  const { claim, sign } = setUp();
  claim(fresh);
  const rejection = sign(operator.privateKey, "ana", { action: "reject destination", of: asset.toUpperCase() });
  expect(claim(fresh, [rejection]).statements).toEqual([{ ok: true, detail: "rejected" }]);
});

test.each([
  ["with the report that ends the claim", true],
  ["before any claim", false],
])("a rejection that comes %s is kept: the receiver applies only by an approval", (_when, isClaimed) => {
  const { claim, sign, advance, refusalOf } = setUp();
  if (isClaimed) expect(claim(fresh).state).toBe("waiting");
  const rejection = sign(operator.privateKey, "ana", { action: "reject destination" });
  const detail = "no claim waits: later ones are rejected";
  expect(claim(old, [rejection]).statements).toEqual([{ ok: true, detail }]);
  expect(claim(old, [rejection]).statements).toEqual([{ ok: true, detail: "the statement was used before" }]);
  expect(refusalOf(old)).toBeUndefined();
  expect(claim(fresh).state).toBe("waiting");
  advance(1_000 * HOUR);
  expect(refusalOf(fresh)).toBe("destination_waiting");
  claim(fresh, [sign(operator.privateKey, "ana")]);
  expect(refusalOf(fresh)).toBeUndefined();
});

test("a merchant's first destination of another asset waits when the merchant is no longer new", () => {
  const { claimOf, advance } = setUp();
  const other = asset.replaceAll("a1", "a2");
  const third = asset.replaceAll("a1", "a3");
  expect(claimOf(other)).toBe("applied");
  advance(72 * HOUR);
  expect(claimOf(third)).toBe("waiting");
});

test("while a lost store is rebuilt every reported receiver waits, and afterwards that of a merchant with older deposits", () => {
  const { deps, store, claimOf, advance } = setUp();
  const { now: clock } = deps;
  const [present, next] = [asset.replaceAll("a1", "a2"), asset.replaceAll("a1", "a3")];
  const treasury = { chain: "eip155:31337", treasury: `0x${"c1".repeat(20)}` };
  const recordDeposit = (merchant: string, txHash: string) => {
    const of = { merchantId: merchant, paymentId: txHash, asset, amount: 1n, payer: old, blockNumber: 1 };
    insertDeposits(store, [{ chain: treasury.chain, txHash, logIndex: 0, ...of }], clock());
  };
  expect(claimOf(present, "mrch_new")).toBe("applied");
  inStoreTransaction(store, () => recordRetirement(store, treasury, { state: "begun", at: clock() }));
  expect([claimOf(asset, "mrch_2"), claimOf(next, "mrch_new")]).toEqual(["waiting", "waiting"]);
  recordDeposit("mrch_3", "0x01");
  advance(HOUR);
  inStoreTransaction(store, () => recordRetirement(store, treasury, { state: "ended", at: clock() }));
  expect(claimOf(asset, "mrch_3")).toBe("waiting");
  advance(HOUR);
  recordDeposit("mrch_4", "0x02");
  expect(claimOf(asset, "mrch_4")).toBe("applied");
  advance(72 * HOUR);
  expect(claimOf(asset, "mrch_3")).toBe("applied");
});

// Revoked keys

test("a key that a worker reports as revoked approves nothing, however often it is reported again", () => {
  const { claim, sign, refusalOf, advance, registerApprover } = setUp();
  registerApprover();
  claim(old, [], [], [approver.publicKey]);
  claim(old, [], [approver.publicKey]);
  advance(1_000 * HOUR);
  const approval = sign(approver.privateKey, approver.publicKey);
  expect(claim(fresh, [approval]).statements).toEqual([{ ok: false, detail: "the key is revoked" }]);
  expect(refusalOf(fresh)).toBe("destination_waiting");
});

test("a key that is revoked within its waiting period never counts, also one that is reported after its revocation", () => {
  const { claim, sign, advance } = setUp();
  claim(old, [], [], [approver.publicKey]);
  claim(old, [], [approver.publicKey]);
  advance(1_000 * HOUR);
  claim(fresh);
  for (const action of ["approve destination", "reject destination"] as const)
    expect(claim(fresh, [sign(approver.privateKey, approver.publicKey, { action })]).statements).toEqual([
      { ok: false, detail: "the key was revoked within its waiting period" },
    ]);
});

test("a thief who reports a merchant's key as revoked does not silence its rejection", () => {
  const { claim, sign, refusalOf, advance, registerApprover } = setUp();
  registerApprover();
  claim(fresh, [], [], [approver.publicKey]);
  const rejection = sign(approver.privateKey, approver.publicKey, { action: "reject destination" });
  expect(claim(fresh, [rejection]).statements).toEqual([{ ok: true, detail: "rejected" }]);
  advance(100 * HOUR);
  expect(refusalOf(fresh)).not.toBeUndefined();
  expect(refusalOf(old)).toBeUndefined();
});

test("an operator and the merchant's own key revoke a key by a signed statement, a stranger does not", () => {
  const made = setUp();
  made.registerApprover();
  const stranger = makeApprovalKey();
  const leaked = approver.publicKey;
  const forged = made.revocation(stranger.privateKey, stranger.publicKey, leaked);
  expect(made.claim(old, [forged]).statements).toMatchObject([{ ok: false }]);
  const own = made.revocation(approver.privateKey, leaked, leaked);
  expect(made.claim(old, [own]).statements).toEqual([{ ok: true, detail: "revoked" }]);
  const second = made.revocation(operator.privateKey, "ana", leaked);
  expect(made.claim(old, [second]).statements).toEqual([{ ok: true, detail: "revoked before" }]);
  expect(made.claim(fresh, [made.sign(approver.privateKey, leaked)]).statements).toMatchObject([{ ok: false }]);
});

test("an approval that was held back does not undo the rejection that was signed after it", () => {
  const { claim, sign, refusalOf, advance } = setUp();
  claim(fresh);
  const heldBack = sign(operator.privateKey, "ana");
  advance(HOUR);
  claim(fresh, [sign(operator.privateKey, "ana", { action: "reject destination" })]);
  expect(claim(fresh, [heldBack]).statements).toMatchObject([{ ok: false }]);
  expect(refusalOf(fresh)).toBe("destination_waiting");
});

test("an approval of the receiver that applies is used up, and brings it back no more", () => {
  const { claim, sign, refusalOf } = setUp();
  const approval = sign(operator.privateKey, "ana", { receiver: old });
  expect(claim(old, [approval]).statements).toEqual([{ ok: true, detail: "nothing to decide" }]);
  claim(fresh, [sign(operator.privateKey, "ana")]);
  claim(old, [approval]);
  expect(refusalOf(old)).toBe("destination_waiting");
});

// A pause

test.each([
  ["the signer is paused", true],
  ["the signer is stopped, and paused when it starts", false],
])("a claim whose time comes while %s can still be rejected, and never applies", (_when, isRunning) => {
  const { claim, sign, refusalOf, advance, setPaused } = setUp();
  claim(fresh);
  advance(71 * HOUR);
  setPaused(isRunning);
  advance(100 * HOUR, { isRunning });
  setPaused(true);
  advance(HOUR);
  expect(claim(fresh).state).toBe("waiting");
  const rejection = sign(operator.privateKey, "ana", { action: "reject destination" });
  expect(claim(fresh, [rejection]).statements).toEqual([{ ok: true, detail: "rejected" }]);
  setPaused(false);
  advance(HOUR);
  expect([refusalOf(old), refusalOf(fresh)]).toEqual([undefined, "destination_unapproved"]);
});

test("a claim whose time came during a pause applies when the pause ends", () => {
  const { claim, refusalOf, advance, setPaused } = setUp();
  claim(fresh);
  setPaused(true);
  advance(100 * HOUR);
  expect(refusalOf(fresh)).toBe("destination_waiting");
  setPaused(false);
  advance(1_000);
  expect(refusalOf(fresh)).toBeUndefined();
});

test("a first destination that is reported during a pause applies when the pause ends", () => {
  const { claimOf, setPaused } = setUp();
  const other = asset.replaceAll("a1", "a2");
  setPaused(true);
  expect(claimOf(other)).toBe("waiting");
  setPaused(false);
  expect(claimOf(other)).toBe("applied");
});

test("during a pause a merchant's key rejects and revokes, and only an operator approves", () => {
  const { claim, sign, refusalOf, registerApprover, setPaused } = setUp();
  registerApprover();
  setPaused(true);
  expect(claim(fresh, [sign(approver.privateKey, approver.publicKey)]).statements).toEqual([
    { ok: false, detail: "the signer is paused: only operators approve" },
  ]);
  expect(refusalOf(fresh)).toBe("destination_waiting");
  const rejection = sign(approver.privateKey, approver.publicKey, { action: "reject destination", receiver: third });
  expect(claim(third, [rejection]).statements).toEqual([{ ok: true, detail: "rejected" }]);
  expect(claim(fresh, [sign(operator.privateKey, "ana")]).statements).toEqual([{ ok: true, detail: "approved" }]);
});

test("a key whose time comes during a pause can be revoked before it counts", () => {
  const { claim, sign, advance, setPaused, revocation } = setUp();
  claim(old, [], [approver.publicKey]);
  setPaused(true);
  advance(100 * HOUR);
  claim(old, [revocation(operator.privateKey, "ana", approver.publicKey)]);
  setPaused(false);
  advance(HOUR);
  expect(claim(fresh, [sign(approver.privateKey, approver.publicKey)]).statements).toMatchObject([{ ok: false }]);
});
