import { z } from "zod";

/** The shortest retention of history, days: `remove_history` keeps younger rows (db/migrations/initial/retention.sql). */
const LEAST_DAYS = 7;
const days = z.union([z.literal("forever").transform(() => null), z.coerce.number().int().min(LEAST_DAYS).max(36_500)]);

/**
 * After how many days the rows of history leave, as `table=days` separated by commas, or as `days` for all tables. Null: they
 * stay forever.
 */
export const retentionDays = z
  .string()
  .default("")
  .transform((text): Record<string, unknown> => {
    const all = text.trim();
    if (/^(forever|\d+)$/.test(all)) return { attempt: all, webhook_event: all, event: all, payment_option: all };
    const parts = text.split(",").map((part) => part.trim());
    // A table without days gets an empty text, which is refused.
    const pairs = parts.filter(Boolean).map((part) => /^([^=]*)=?(.*)$/.exec(part)?.slice(1) ?? []);
    return Object.fromEntries(pairs);
  })
  .pipe(
    z
      .strictObject({
        attempt: days.default(30),
        webhook_event: days.default(30),
        event: days.default(30),
        payment_option: days.default(30),
      })
      .refine((given) => isAtLeast(given.event, given.webhook_event), {
        path: ["event"],
        error: "expected at least the days of webhook_event, whose payloads need the rows of event",
      })
      .refine((given) => isAtLeast(given.payment_option, given.attempt), {
        path: ["payment_option"],
        error: "expected at least the days of attempt, whose rows refer to those of payment_option",
      }),
  );

/** Returns true if a retention is as long as another one. */
const isAtLeast = (one: number | null, other: number | null) => one === null || (other !== null && one >= other);
