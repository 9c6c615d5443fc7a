import { z } from "zod";
import { isStorable } from "../ops/clean-text.ts";

/**
 * Text of a caller that goes to Postgres, which takes neither a zero byte nor half a surrogate pair.
 * @param longest characters
 */
export function text(longest: number) {
  return z
    .string()
    .max(longest, `expected at most ${longest} characters`)
    .refine(isStorable, "holds characters that are no text");
}

/** A member that may be left out; many clients write null for that. */
export function optional<S extends z.ZodType>(schema: S) {
  return schema.nullish().transform((given) => given ?? undefined);
}

/** A payment identifier, in the form we give out. */
export const paymentId = z.string().regex(/^pay_[0-9a-f]{32}$/);

/** Milliseconds a caller is willing to wait (specification, part 8: int64, minimum 0). Still uncapped here. */
export const maxPollMs = z
  .string("expected one whole number of milliseconds")
  .regex(/^\d{1,19}$/, "expected a whole number of milliseconds, 0 or more, of at most 19 digits")
  .transform(Number)
  .optional();

export const pollQuery = z.object({ maxPollMs });

const currency = /^iso4217\/[A-Z]{3}$/;
const asset = /^caip19\/[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}\/[-a-z0-9]{3,8}:[-.%a-zA-Z0-9]{1,128}$/;

/** What a merchant asks for, in minor units (specification, 2.3). 78 digits are what the ledger can hold. */
export const amount = z.object({
  unit: z
    .string()
    .max(256, "expected at most 256 characters")
    .refine(
      (unit) => currency.test(unit) || asset.test(unit),
      "expected iso4217/ and a currency code, or caip19/ and an asset",
    ),
  value: z
    .string()
    .regex(/^[1-9][0-9]{0,77}$/, "expected 1 to 78 digits, without a leading zero and not zero")
    .transform(BigInt),
});

/** A merchant's own order identifier. The alphabet is what bank references allow. */
export const referenceId = z
  .string()
  .regex(/^[A-Za-z0-9 /:.,+-]{1,35}$/, "expected 1 to 35 letters, digits, spaces and / - : . , +");

/** Unix time in whole seconds, up to the year 9999. */
export const unixSeconds = z
  .int("expected whole seconds since 1970")
  .min(0, "expected whole seconds since 1970")
  .max(253_402_300_799, "expected seconds since 1970, not milliseconds")
  .transform((seconds) => new Date(seconds * 1000));

/** A wallet's account, CAIP-10; whether we know its chain is another question. */
export const account = z
  .string()
  .regex(
    /^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}:[-.%a-zA-Z0-9]{1,128}$/,
    "expected a CAIP-10 account such as eip155:8453:0x…",
  );

/** A merchant identifier in a path. */
export const merchantId = z.string().regex(/^mrch_[0-9a-f]{32}$/);

/** Where a page begins and how long it is. */
export function listQuery({ longest, usual }: { longest: number; usual: number }) {
  const expected = `expected a whole number from 1 to ${longest}`;
  return z.object({
    cursor: z.string("expected one cursor").max(1_024, "expected the nextCursor of the page before").optional(),
    limit: z
      .string(expected)
      .regex(/^\d{1,6}$/, expected)
      .transform(Number)
      .refine((limit) => limit >= 1 && limit <= longest, expected)
      .default(usual),
  });
}

/** A member that clients send and nothing depends on. Said in the description, so that nobody wonders. */
export const ignored = z.unknown().optional().meta({ description: "Accepted and ignored." });

/** A body that need not be there and says nothing. */
export const noBody = z.object({}, "expected an object or nothing").nullish();

/** RFC 3339. */
export const instant = z.iso
  .datetime({ offset: true, error: "expected a time such as 2026-03-01T12:00:00Z" })
  .transform((at) => new Date(at));

/** A query member that may be given several times. `expected` is told when one of them does not fit. */
export function repeated<S extends z.ZodType<unknown, string>>(one: S, expected: string) {
  return z
    .union([one.transform((value) => [value]), z.array(one).min(1).max(50)], `${expected}, at most 50 of them`)
    .transform((given) => given as z.output<S>[]);
}
