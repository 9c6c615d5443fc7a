import { createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import type { Statement } from "./protocol.ts";

// What operators and merchants sign with Ed25519. A statement travels through rows that the signer does not trust: a change of
// one makes its signature invalid.

/** What a statement is about. Receivers and transaction hashes are in the form of their chain, amounts in minor units. */
export type StatementSubject =
  | {
      action: "approve destination" | "reject destination";
      merchantId: string;
      asset: string;
      receiver: string;
    }
  | { action: "revoke approval key"; merchantId: string; publicKey: string }
  | { action: "return movement"; asset: string; amount: bigint; receiver: string; txHash: string; logIndex: number }
  | { action: "withdraw capital"; asset: string; amount: bigint; receiver: string; reference: string };

export type ReadStatement = { deployment: string; subject: StatementSubject; at: Date };

const MINUTE_MS = 60_000;
/** How long a statement can be used, milliseconds: the signer may be down, but an old approval must not be kept in reserve. */
const VALID_MS = 24 * 60 * MINUTE_MS;
/** How far the clock of who signs may be ahead, milliseconds. */
const AHEAD_MS = 5 * MINUTE_MS;

const TITLE = "payment-service statement v1";

/**
 * Returns the canonical text of a statement: its title, then one line for each member in a fixed order. Throws for a value
 * that contains a line feed.
 */
export function writeStatement(
  subject: StatementSubject,
  { deployment, at }: { deployment: string; at: Date },
): string {
  const { action, ...about } = subject;
  const members = { deployment, action, ...sortMembers(about), at: at.toISOString() };
  const lines = Object.entries(members).map(([name, value]) => `${name}: ${value}`);
  if (lines.some((line) => /[\r\n]/.test(line))) throw new Error("a statement's value contains a line feed");
  return [TITLE, ...lines].join("\n");
}

const sortMembers = (members: object) =>
  Object.fromEntries(Object.entries(members).sort(([a], [b]) => (a < b ? -1 : 1)));

/** Reads a canonical text. Returns undefined for any other text, also for one that differs only in its spelling. */
export function readStatement(text: string): ReadStatement | undefined {
  if (text.includes("\r")) return undefined;
  const members = new Map(
    text
      .split("\n")
      .slice(1)
      .map((line): [string, string] => {
        const end = line.indexOf(": ");
        return [line.slice(0, end), line.slice(end + 2)];
      }),
  );
  const of = (name: string) => members.get(name) ?? "";
  const at = new Date(of("at"));
  const subject = readSubject(of);
  if (!subject || Number.isNaN(at.getTime())) return undefined;
  const read = { deployment: of("deployment"), subject, at };
  return writeStatement(subject, read) === text ? read : undefined;
}

function readSubject(of: (name: string) => string): StatementSubject | undefined {
  const action = of("action");
  const paid = { asset: of("asset"), receiver: of("receiver") };
  const isAmount = /^[1-9]\d{0,77}$/.test(of("amount"));
  switch (action) {
    case "approve destination":
    case "reject destination":
      return { action, merchantId: of("merchantId"), ...paid };
    case "revoke approval key":
      return { action, merchantId: of("merchantId"), publicKey: of("publicKey") };
    case "return movement":
      if (!isAmount) return undefined;
      return { action, ...paid, amount: BigInt(of("amount")), txHash: of("txHash"), logIndex: Number(of("logIndex")) };
    case "withdraw capital":
      return isAmount ? { action, ...paid, amount: BigInt(of("amount")), reference: of("reference") } : undefined;
    default:
      return undefined;
  }
}

/** Returns why a statement that was signed at a time can no longer be used, or cannot be used yet; undefined if it can. Pure. */
export function findAgeRefusal(signedAt: Date, at: Date): string | undefined {
  const ageMs = at.getTime() - signedAt.getTime();
  if (ageMs > VALID_MS || ageMs < -AHEAD_MS) return "the statement is older than a day, or from the future";
  return undefined;
}

/** Signs a text. @param key an Ed25519 private key @returns base64 */
export function signText(key: KeyObject, text: string): string {
  return sign(null, Buffer.from(text), key).toString("base64");
}

/** Returns true if a statement is signed by this key. @param publicKey Ed25519, 32 bytes in hex */
export function isSignedBy(publicKey: string, { text, signature }: Pick<Statement, "text" | "signature">): boolean {
  if (!/^[0-9a-f]{64}$/.test(publicKey)) return false;
  const x = Buffer.from(publicKey, "hex").toString("base64url");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  return verify(null, Buffer.from(text), key, Buffer.from(signature, "base64"));
}
