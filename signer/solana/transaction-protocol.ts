import { z } from "zod";
import { mostRent } from "../../chains/solana/nonce-accounts.ts";
import { assetPattern } from "../../runtime/caip-patterns.ts";
import { refusalReasons } from "../refusals.ts";

// The messages about transactions that the treasury signs on Solana. The signer builds the bytes from these members itself.
// Requests are strict, as in protocol.ts.

/** Most payouts of one transaction; fewer fit into its bytes. */
const MAX_PAYOUTS = 16;
/** Most markers of one request. The signer closes those of them that fit into one transaction. */
export const MAX_MARKERS = 100;

const address = z.string().regex(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/);
/** Whole numbers of at most 53 bits, which the library of Solana takes as JavaScript numbers. */
const lamports = z
  .string()
  .regex(/^\d{1,15}$/)
  .transform(BigInt);
const u64 = z
  .string()
  .regex(/^\d{1,20}$/)
  .transform(BigInt)
  .refine((value) => value < 2n ** 64n);

/** A transaction of payouts that were authorized before, each by its nonce, receiver and amount. */
export const payoutTransactionRequest = z.strictObject({
  asset: z.string().regex(assetPattern).max(256),
  feePayer: address,
  nonceAccount: address,
  /** The value of the durable nonce. */
  nonce: address,
  /** At most about what a marker needs, because the lane that pays the fee pays it. */
  markerRent: lamports.refine((value) => value <= mostRent()),
  budget: z.strictObject({ units: z.number().int().min(1).max(1_400_000), unitPrice: u64 }),
  payouts: z
    .array(
      z.strictObject({
        /** The payout's nonce, which the signer has authorized. */
        memo: z.string().regex(/^0x[0-9a-f]{64}$/),
        destination: address,
        amount: u64,
        makeAccount: z.boolean(),
      }),
    )
    .min(1)
    .max(MAX_PAYOUTS),
});

/** A transaction that closes markers of payouts. */
export const markerClosingRequest = z.strictObject({
  chain: z.string().max(64),
  feePayer: address,
  blockhash: address,
  markers: z.array(z.strictObject({ address, lamports })).min(1).max(MAX_MARKERS),
});

const refused = z.object({ ok: z.literal(false), reason: z.enum(refusalReasons), detail: z.string() });
/** Base64 of 64 bytes. */
const signature = z.string().length(88);

/** The treasury's signature of the transaction. */
export const payoutTransactionResponse = z.discriminatedUnion("ok", [
  z.object({ ok: z.literal(true), signature }),
  refused,
]);
/** The treasury's signature of the transaction that closes these of the requested markers, in this order. */
export const markerClosingResponse = z.discriminatedUnion("ok", [
  z.object({ ok: z.literal(true), signature, addresses: z.array(address) }),
  refused,
]);

export type PayoutTransactionRequest = z.output<typeof payoutTransactionRequest>;
export type PayoutTransactionResult = z.output<typeof payoutTransactionResponse>;
export type MarkerClosingRequest = z.output<typeof markerClosingRequest>;
export type MarkerClosingResult = z.output<typeof markerClosingResponse>;
