import { z } from "zod";
import { isStorable } from "../../runtime/clean-text.ts";
import { text } from "../contract/request-schemas.ts";

const MAX_KEYS = 50;
const KEYS = "expected keys of 1 to 40 characters, without control characters, colons and brackets";
const VALUES = "expected a string of at most 500 characters";

/** A key, which a filter separates from its value by a colon. Characters are counted as code points. */
const key = z.string().regex(/^(?!__proto__$)[^\p{Cc}\p{Cs}:[\]]{1,40}$/u, KEYS);
const value = z
  .string(VALUES)
  .regex(/^[^\p{Cs}]{0,500}$/u, VALUES)
  .refine(isStorable, VALUES);

/** A merchant's own values of a payment, by their own names. */
export const metadata = z
  .record(key, value, { error: ({ code }) => (code === "invalid_key" ? KEYS : undefined) })
  .refine((all) => Object.keys(all).length <= MAX_KEYS, `expected at most ${MAX_KEYS} keys`)
  .meta({
    description:
      "The merchant's own values by their own names: up to 50 keys of 40 characters, with up to 500 characters each.",
    example: { order: "6735", channel: "web" },
  });

/** What a payment is for, in the merchant's words. */
export const description = text(500)
  .min(1, "expected 1 to 500 characters")
  .meta({ description: "What the payment is for, in the merchant's words.", example: "Order 6735, 2 T-shirts" });

const pair = z.string().regex(/^[^:]{1,80}:/, "expected key:value");

const keyOf = (one: string) => one.slice(0, one.indexOf(":"));

/** A filter by metadata: `key:value`, which may be repeated. All of them must match. */
export const metadataFilter = z
  .union([pair.transform((one) => [one]), z.array(pair).min(1).max(10)], "expected key:value, at most 10 times")
  .refine((pairs) => new Set(pairs.map(keyOf)).size === pairs.length, "expected each key once")
  .transform((pairs) => Object.fromEntries(pairs.map((one) => [keyOf(one), one.slice(one.indexOf(":") + 1)])))
  .refine((all) => metadata.safeParse(all).success, "expected key:value, as metadata has them")
  .meta({
    description:
      "Only payments whose metadata has this value under this key, as `key:value`. Repeatable; all must match.",
    example: ["order:6735"],
  });
