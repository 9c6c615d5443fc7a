import { z } from "zod";
import { assetPattern } from "../runtime/caip-patterns.ts";
import { refusalReasons } from "./refusals.ts";

// The messages between workers and the signer: JSON over HTTP. Amounts are strings of minor units on the wire and bigint in
// code. Requests are strict: a member that the signer does not know is an error, never ignored. Responses are not: workers of
// the former release ignore what a newer signer adds.

/** Most payouts of one request. */
export const MAX_PAYOUTS = 200;
/** Most deposits of one request, over all of its payouts. */
export const MAX_DEPOSITS = 1_000;
/** Approvals in a return. */
export const MAX_APPROVALS = 10;

const id = z.string().regex(/^[\w-]{1,128}$/);
const asset = z.string().regex(assetPattern).max(256);
const address = z.string().min(1).max(128);
const number = z.number().int().min(0);
const amount = z
  .string()
  .regex(/^[1-9]\d{0,77}$/)
  .transform(BigInt);
/** A movement into the treasury: the transaction and the log's index in its block, or on Solana in its transaction. */
const place = { txHash: z.string().min(1).max(128), logIndex: number };

/** The longest transaction on Solana (1232 bytes), in base64. */
const MAX_TRANSACTION_LENGTH = 1_644;

/**
 * A claim that a movement paid a payment of a merchant. The movement's nonce on chain proves or refutes it. `transaction` has
 * the signed bytes of a buyer's transaction on Solana, in base64. The signer believes them by their signature, and needs
 * only the chain's word that they have succeeded.
 */
const depositClaim = z.strictObject({
  asset,
  merchantId: id,
  paymentId: id,
  ...place,
  transaction: z.base64().max(MAX_TRANSACTION_LENGTH).optional(),
});

/**
 * A text that an operator or a merchant has signed with Ed25519. `signer` is the operator's name in the limits file or the
 * merchant's approval key in hex, `signature` is base64.
 */
export const statement = z.strictObject({
  text: z.string().max(2_000),
  signer: z.string().max(128),
  signature: z.string().max(128),
});

const deposits = z.array(depositClaim).max(MAX_DEPOSITS);
const paid = { asset, amount, receiver: address };

/** A payout that a worker asks for. The signer derives its nonce itself. */
const payoutRequest = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("settlement"), merchantId: id, number, ...paid, deposits }),
  z.strictObject({ kind: z.literal("refund"), merchantId: id, paymentId: id, number, ...paid, deposits }),
  /** Returns money that paid no payment to its sender. */
  z.strictObject({ kind: z.literal("return"), ...paid, ...place, approvals: z.array(statement).max(MAX_APPROVALS) }),
]);

export const payoutsRequest = z.strictObject({ payouts: z.array(payoutRequest).min(1).max(MAX_PAYOUTS) });
export const depositsRequest = z.strictObject({ deposits: deposits.min(1) });

const refused = z.object({ ok: z.literal(false), reason: z.enum(refusalReasons), detail: z.string() });

/**
 * The signature of a payout, 0x hex. Null on Solana, where the payout is recorded as authorized and the transaction that
 * makes it is signed later.
 */
const signature = z
  .string()
  .regex(/^0x[0-9a-f]+$/)
  .nullable();
const signed = z.object({ ok: z.literal(true), signature });

/** One result for each payout, in the order of the request. */
export const payoutsResponse = z.object({ results: z.array(z.discriminatedUnion("ok", [signed, refused])) });
/** One result for each deposit, in the order of the request. */
export const depositsResponse = z.object({
  results: z.array(z.discriminatedUnion("ok", [z.object({ ok: z.literal(true) }), refused])),
});

/**
 * An account of a merchant. `applied`: the service pays to it. `requested`: a change to it waits. `past`: a change to it has applied or
 * was rejected, and it is neither of the others any more.
 */
export const destination = z.strictObject({
  merchantId: id,
  asset,
  receiver: address,
  state: z.enum(["applied", "requested", "past"]),
});
/** An Ed25519 public key, in hex, by which a merchant approves changes of its destinations. */
export const approvalKey = z.strictObject({ merchantId: id, publicKey: z.string().regex(/^[0-9a-f]{64}$/) });

/**
 * Merchants' destinations as the service's rows have them, always all of a merchant and asset, signed statements, and the keys that may
 * sign such statements besides operators, new ones and revoked ones. The signer decides by its own clock.
 */
export const destinationsRequest = z.strictObject({
  destinations: z.array(destination).max(MAX_PAYOUTS),
  statements: z.array(statement).max(MAX_PAYOUTS),
  approvalKeys: z.array(approvalKey).max(MAX_PAYOUTS),
  revokedKeys: z.array(approvalKey).max(MAX_PAYOUTS),
});
export const destinationsResponse = z.object({
  /** The state of each destination of the request, in its order. `appliesAt` is in Unix milliseconds. */
  destinations: z.array(
    z.object({ state: z.enum(["applied", "waiting", "rejected"]), appliesAt: z.number().int().nullable() }),
  ),
  statements: z.array(z.object({ ok: z.boolean(), detail: z.string() })),
});

/** Asks whether the treasury holds more of an asset than it should. The signer alone decides the amount and the receiver. */
export const excessRequest = z.strictObject({
  asset,
  /** What payouts that are not final yet still need, minor units. It only lowers the amount. */
  pending: z
    .string()
    .regex(/^\d{1,78}$/)
    .transform(BigInt),
});
export const excessResponse = z.discriminatedUnion("ok", [
  z.object({
    ok: z.literal(true),
    /** Null while nothing has to move. The same transfer is returned until the chain shows it in the final state. */
    transfer: z.object({ number: number.min(1), amount, receiver: address, signature }).nullable(),
  }),
  refused,
]);

/** Asks for the newest entry of the signer's audit log, and for the hash of the one that the service knows as the newest. */
export const auditHeadRequest = z.strictObject({
  known: z.strictObject({ day: z.iso.date(), sequence: number }).nullable(),
});
const hash = z.string().regex(/^[0-9a-f]{64}$/);
export const auditHeadResponse = z.object({
  /** Null when someone has deleted the log: it begins with the store. */
  head: z.object({ day: z.iso.date(), sequence: number, hash }).nullable(),
  /** Null if the log has no such entry. */
  knownHash: hash.nullable(),
});

export type AuditHeadRequest = z.output<typeof auditHeadRequest>;
export type AuditHeadResponse = z.output<typeof auditHeadResponse>;
export type ExcessRequest = z.output<typeof excessRequest>;
export type ExcessResult = z.output<typeof excessResponse>;
export type DepositClaim = z.output<typeof depositClaim>;
export type Statement = z.output<typeof statement>;
export type PayoutRequest = z.output<typeof payoutRequest>;
export type ReturnRequest = Extract<PayoutRequest, { kind: "return" }>;
export type Refused = z.output<typeof refused>;
export type PayoutResult = z.output<typeof signed> | Refused;
export type DepositResult = { ok: true } | Refused;
export type DestinationsRequest = z.output<typeof destinationsRequest>;
export type DestinationsResponse = z.output<typeof destinationsResponse>;
