import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { expect, test } from "vitest";
import { createLog } from "../../../runtime/log.ts";
import { claimDestinations } from "../../../signer/claim-destinations.ts";
import { findDestinationRefusal } from "../../../signer/destinations.ts";
import type { Limits } from "../../../signer/limits.ts";
import type { Statement } from "../../../signer/protocol.ts";
import { type StatementSubject, signText, writeStatement } from "../../../signer/statements.ts";
import { createStore } from "../../../signer/store.ts";

const asset = `eip155:31337/erc20:0x${"a1".repeat(20)}`;
const [old, fresh, third] = ["d1", "d2", "d3"].map((byte) => `0x${byte.repeat(20)}`) as [string, string, string];
const merchantId = "mrch_1";
const HOUR = 3_600_000;

/** Returns an Ed25519 key with its public key in hex. */
function makeKey(): { privateKey: KeyObject; publicKey: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return {
    privateKey,
    publicKey: Buffer.from(publicKey.export({ format: "jwk" }).x ?? "", "base64url").toString("hex"),
  };
}

const operator = makeKey();
const approver = makeKey();

/** A signer whose merchant has one destination that applies, and one that waits. */
function setUp() {
  let now = Date.parse("2026-03-01T00:00:00Z");
  const limits: Limits = {
    paused: false,
    destinationWaitingHours: 72,
    assets: {},
    operators: [{ name: "ana", publicKey: operator.publicKey }],
  };
  const store = createStore(":memory:");
  const deps = {
    store,
    readLimits: () => limits,
    deployment: "test",
    log: createLog({ level: "silent", role: "test" }),
    now: () => new Date(now),
  };
  const claim = (receiver: string, statements: Statement[] = [], keys: string[] = []) => {
    const approvalKeys = keys.map((publicKey) => ({ merchantId, publicKey }));
    const answer = claimDestinations(deps, {
      destinations: [{ merchantId, asset, receiver }],
      statements,
      approvalKeys,
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
    }: {
      receiver?: string;
      action?: "approve destination" | "reject destination";
      deployment?: string;
    } = {},
  ): Statement => {
    const subject: StatementSubject = { action, merchantId, asset, receiver };
    const text = writeStatement(subject, { deployment, at: deps.now() });
    return { text, signer, signature: signText(key, text) };
  };
  const refusalOf = (receiver: string) => findDestinationRefusal(store, { merchantId, asset, receiver }, deps.now());
  const first = claim(old);
  const advance = (ms: number) => {
    now += ms;
  };
  const claimOf = (wanted: string) =>
    claimDestinations(deps, {
      destinations: [{ merchantId, asset: wanted, receiver: fresh }],
      statements: [],
      approvalKeys: [],
    })?.destinations[0]?.state;
  return { deps, store, claim, claimOf, sign, refusalOf, first, advance };
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
  claim(old, [], [approver.publicKey]);
  const approval = sign(approver.privateKey, approver.publicKey);
  expect(claim(fresh, [approval]).statements).toEqual([{ ok: true, detail: "approved" }]);
  expect(refusalOf(fresh)).toBeUndefined();
  const other = { merchantId: "mrch_2", asset, receiver: old };
  claimDestinations(deps, { destinations: [other], statements: [], approvalKeys: [] });
  const subject = { action: "approve destination", ...other, receiver: fresh } as const;
  const text = writeStatement(subject, { deployment: "test", at: deps.now() });
  const foreign = { text, signer: approver.publicKey, signature: signText(approver.privateKey, text) };
  const answer = claimDestinations(deps, {
    destinations: [{ ...other, receiver: fresh }],
    statements: [foreign],
    approvalKeys: [],
  });
  expect(answer?.statements).toEqual([{ ok: false, detail: "the key may not decide about this merchant" }]);
});

test("what the store has recorded about destinations can be neither changed nor deleted", () => {
  const { store, claim, sign } = setUp();
  claim(fresh, [sign(operator.privateKey, "ana")], [approver.publicKey]);
  for (const table of ["destination", "destination_event", "approval_key"])
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

test("a merchant's first destination of another asset waits when the merchant is no longer new", () => {
  const { claimOf, advance } = setUp();
  const other = asset.replaceAll("a1", "a2");
  const third = asset.replaceAll("a1", "a3");
  expect(claimOf(other)).toBe("applied");
  advance(72 * HOUR);
  expect(claimOf(third)).toBe("waiting");
});
