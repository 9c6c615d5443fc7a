import { z } from "zod";
import { isStorable } from "../../runtime/clean-text.ts";

/**
 * Returns the schema of text that is stored in Postgres, which accepts neither a zero byte nor half a surrogate pair.
 * @param maxLength characters
 */
export function text(maxLength: number) {
  return z
    .string()
    .max(maxLength, `expected at most ${maxLength} characters`)
    .refine(isStorable, "holds characters that are not valid text");
}

/** Makes a member optional. Null counts as left out, because many clients send it. */
export function optional<S extends z.ZodType>(schema: S) {
  return schema.nullish().transform((given) => given ?? undefined);
}

/** A payment identifier of this service. */
export const paymentId = z.string().regex(/^pay_[0-9a-f]{32}$/, "expected a payment's id");

/** Time that a caller is willing to wait, milliseconds (specification, part 8: int64, minimum 0). Not capped here. */
export const maxPollMs = z
  .string("expected one whole number of milliseconds")
  .regex(/^\d{1,19}$/, "expected a whole number of milliseconds, 0 or more, of at most 19 digits")
  .transform(Number)
  .meta({ describedAs: { type: "integer", format: "int64", minimum: 0 } })
  .optional();

export const pollQuery = z.object({ maxPollMs });

const currency = /^iso4217\/[A-Z]{3}$/;
const asset = /^caip19\/[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}\/[-a-z0-9]{3,8}:[-.%a-zA-Z0-9]{1,128}$/;

/** An amount in minor units (specification, 2.3). The ledger holds 78 digits at most. */
export const amount = z
  .object({
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
  })
  .meta({ id: "RequestedAmount", description: "An amount in minor units of its unit." });

/** A merchant's own order identifier. Its length is counted in code points; the specification (2.12) has no limit. */
export const referenceId = z
  .string()
  .regex(/^[^\p{Cc}\p{Cs}]{1,255}$/u, "expected 1 to 255 characters without control characters");

/** Unix time in whole seconds, up to the year 9999. */
export const unixSeconds = z
  .int("expected whole seconds since 1970")
  .min(0, "expected whole seconds since 1970")
  .max(253_402_300_799, "expected seconds since 1970, not milliseconds")
  .transform((seconds) => new Date(seconds * 1000));

/** A merchant identifier in a path. */
export const merchantId = z.string().regex(/^mrch_[0-9a-f]{32}$/, "expected a merchant's id");

/** Returns the schema of a list's query, which only merchants send: the cursor of the page and its length. */
export function listQuery({ maxLimit, defaultLimit }: { maxLimit: number; defaultLimit: number }) {
  const expected = `expected a whole number from 1 to ${maxLimit}`;
  return z.strictObject({
    cursor: z.string("expected one cursor").max(1_024, "expected the nextCursor of the page before").optional(),
    limit: z
      .string(expected)
      .regex(/^\d{1,6}$/, expected)
      .transform(Number)
      .refine((limit) => limit >= 1 && limit <= maxLimit, expected)
      .meta({ describedAs: { type: "integer", format: "int32", minimum: 1, maximum: maxLimit, default: defaultLimit } })
      .default(defaultLimit),
  });
}

/** A query parameter that is true or false, as clients in several languages write it. */
export const flag = z
  .enum(["true", "True", "1", "false", "False", "0"], "expected true or false")
  .transform((given) => given === "true" || given === "True" || given === "1")
  .meta({ describedAs: { type: "boolean" } });

/** A member that clients send and the service ignores; the OpenAPI description says so. */
export const ignored = z.unknown().optional().meta({ description: "Accepted and ignored." });

/** The query of a call without parameters, whose unknown parameters are ignored: that of wallets, and of terminals. */
export const ignoredQuery = z.object({});

/** An optional body whose members are ignored: that of wallets, and of terminals. */
export const ignoredBody = z
  .object({}, "expected an object or nothing")
  .meta({ description: "No member is read; the body may also be left out." })
  .nullish();

/** An optional body without members. */
export const noBody = z
  .strictObject({}, "expected an object or nothing")
  .meta({ id: "EmptyRequest", description: "An empty object; the body may also be left out." })
  .nullish();

const INSTANT = "expected a time such as 2026-03-01T12:00:00Z";

/** A time as in RFC 3339. Its year has four digits in UTC too, because responses show it so. */
export const instant = z.iso
  .datetime({ offset: true, error: INSTANT })
  .transform((at) => new Date(at))
  .refine((at) => /^\d{4}-/.test(at.toISOString()), INSTANT);

/** Returns the schema of a query parameter that may be repeated. `expected` is the message when a value is invalid. */
export function repeated<S extends z.ZodType<unknown, string>>(schema: S, expected: string) {
  return z.union(
    [schema.transform((value) => [value]), z.array(schema).min(1).max(50)],
    `${expected}, at most 50 of them`,
  );
}
