import { generateKeyPairSync } from "node:crypto";
import { expect, test } from "vitest";
import { requireApprovals, verifyApprovals } from "../../../signer/approvals.ts";
import { readStatement, type StatementSubject, signText, writeStatement } from "../../../signer/statements.ts";

const at = new Date("2026-03-01T00:00:00Z");
const subject: StatementSubject = {
  action: "return movement",
  asset: `eip155:1/erc20:0x${"a1".repeat(20)}`,
  amount: 5_000_000n,
  receiver: `0x${"d1".repeat(20)}`,
  txHash: `0x${"e1".repeat(32)}`,
  logIndex: 3,
};
const people = ["ana", "bob"].map((name) => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const hex = Buffer.from(publicKey.export({ format: "jwk" }).x ?? "", "base64url").toString("hex");
  return { name, privateKey, publicKey: hex };
});
const operators = people.map(({ name, publicKey }) => ({ name, publicKey }));
const [ana, bob] = people as [(typeof people)[0], (typeof people)[0]];
const signAs = ({ name, privateKey }: (typeof people)[0], about = subject, signer = name, signedAt = at) => {
  const text = writeStatement(about, { deployment: "test", at: signedAt });
  return { text, signer, signature: signText(privateKey, text) };
};
const against = { operators, deployment: "test", at, isRecorded: false };
const approversOf = (...statements: ReturnType<typeof signAs>[]) =>
  verifyApprovals(against, statements, subject).approvers;

test("two operators who sign the same subject are two approvals", () => {
  expect(approversOf(signAs(ana), signAs(bob))).toEqual(["ana", "bob"]);
});

test("one operator counts once, and under two names with one key too", () => {
  expect(approversOf(signAs(ana), signAs(ana))).toEqual(["ana"]);
  const twice = [...operators, { name: "alias", publicKey: ana.publicKey }];
  const statements = [signAs(ana), signAs(ana, subject, "alias")];
  expect(verifyApprovals({ ...against, operators: twice }, statements, subject).approvers).toHaveLength(1);
});

test("an approval of the day before yesterday counts only for a payout that was recorded, until its operator approves once more", () => {
  const statements = [signAs(ana), signAs(bob)];
  const later = { ...against, at: new Date(at.getTime() + 25 * 3_600_000) };
  expect(verifyApprovals(later, statements, subject)).toEqual({ approvers: [], tooOld: ["ana", "bob"] });
  expect(requireApprovals(later, statements, subject)).toMatchObject({
    reason: "approval_missing",
    detail: expect.stringContaining("the approvals of ana, bob are older than a day"),
  });
  expect(requireApprovals({ ...later, isRecorded: true }, statements, subject)).toEqual({ approvers: ["ana", "bob"] });
  const repeated = [...statements, signAs(ana, subject, "ana", later.at)];
  expect(verifyApprovals(later, repeated, subject)).toEqual({ approvers: ["ana"], tooOld: ["bob"] });
});

test.each([
  ["another amount", { ...subject, amount: 6_000_000n }],
  ["another receiver", { ...subject, receiver: `0x${"d2".repeat(20)}` }],
  ["another movement", { ...subject, logIndex: 4 }],
])("an approval of %s does not count", (_what, about) => {
  expect(approversOf(signAs(ana, about))).toEqual([]);
});

test("a signature under another operator's name does not count", () => {
  expect(approversOf(signAs(ana, subject, "bob"))).toEqual([]);
});

test.each<StatementSubject>([
  subject,
  { action: "reject destination", merchantId: "mrch_1", asset: subject.asset, receiver: subject.receiver },
  { action: "withdraw capital", asset: subject.asset, amount: 1n, receiver: subject.receiver, reference: "OPS-1" },
])("a statement is read back as it was written, and in no other spelling: $action", (about) => {
  const text = writeStatement(about, { deployment: "test", at });
  expect(readStatement(text)).toEqual({ deployment: "test", subject: about, at });
  for (const other of [`${text}\n`, text.replace("v1", "v2"), text.replace("at: ", "at:  "), `${text}\nnote: x`])
    expect(readStatement(other)).toBeUndefined();
});

test("a value with a line feed cannot become a statement", () => {
  expect(() => writeStatement({ ...subject, receiver: "a\nat: 2026" }, { deployment: "test", at })).toThrow(
    "line feed",
  );
});
