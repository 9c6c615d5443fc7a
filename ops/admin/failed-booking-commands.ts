import type { Command } from "commander";
import { listFailures } from "../../db/queries/failed-bookings.ts";
import { retryFailedBookings } from "../../payments/maintenance/operator-actions.ts";
import { type AddAction, describeEach, RefusedError, UsageError, wholeNumber } from "./command.ts";

/** Adds the commands for rows that the watchers could not book and set aside. */
export function addFailedBookingCommands(program: Command, addAction: AddAction): void {
  const group = program.command("failed-bookings").description("rows that could not be booked and were set aside");
  addAction(
    group
      .command("list")
      .description("list failed bookings with their error, retries and next retry, oldest first")
      .option("--limit <number>", "at most so many", wholeNumber, "200"),
    async (context, _args, { limit }) => {
      const value = (await listFailures(context.db, Number(limit))).map((row) => ({
        id: row.id,
        chain: row.chain,
        kind: row.kind,
        subject: row.subject,
        error: row.error,
        retries: row.retries,
        firstAt: row.first_at,
        lastAt: row.last_at,
        retryAt: row.retry_at,
        ...(row.movement ? { movement: row.movement } : {}),
      }));
      return { value, lines: describeEach(value) };
    },
  );
  addAction(
    group
      .command("retry [failure]")
      .description("retry one failed booking now, or all of them; safe at any time")
      .option("--all", "retry all of them")
      .addHelpText(
        "after",
        "\nA worker retries them within seconds. Bookings that `failed-bookings list` still shows have failed again.",
      ),
    async (context, [id = ""], options) => {
      const all = options["all"] !== undefined;
      if (all === /^[1-9]\d{0,14}$/.test(id)) throw new UsageError("expected the id of one failed booking, or --all");
      const due = await retryFailedBookings(context, {
        actor: await context.actor(),
        id: all ? undefined : Number(id),
      });
      if (due === 0) throw new RefusedError(all ? "there is no failed booking" : `there is no failed booking ${id}`);
      return { value: { due } };
    },
  );
}
