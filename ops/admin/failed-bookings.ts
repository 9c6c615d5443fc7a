import type { Command } from "commander";
import { listFailures, requestRetries } from "../../db/failed-bookings.ts";
import { describe, RefusedError, type Runs, UsageError, wholeNumber } from "./tool.ts";

/** What the watchers could not book, and kept apart so that everything else goes on. */
export function addFailedBookingCommands(program: Command, runs: Runs): void {
  const group = program.command("failed-bookings").description("what could not be booked, and was kept apart");
  runs(
    group
      .command("list")
      .description("what failed, why, how often it was retried, and when it is next; oldest first")
      .option("--limit <number>", "at most so many", wholeNumber, "200"),
    async (tool, _args, { limit }) => {
      const value = (await listFailures(tool.db, Number(limit))).map((row) => ({
        ...{ id: row.id, chain: row.chain, kind: row.kind, subject: row.subject, error: row.error },
        ...{ retries: row.retries, firstAt: row.first_at, lastAt: row.last_at, retryAt: row.retry_at },
        ...(row.movement ? { movement: row.movement } : {}),
      }));
      const lines = value.flatMap((one) => ["", ...describe(one)]);
      return { value, lines: lines.length > 0 ? lines.slice(1) : ["none"] };
    },
  );
  runs(
    group
      .command("retry [failure]")
      .description("have the workers book one again at once, or all of them; harmless at any time")
      .option("--all", "all of them")
      .addHelpText(
        "after",
        "\nThe chain's worker does it within seconds. What is left in `failed-bookings list` has failed again.",
      ),
    async (tool, [id = ""], options) => {
      const all = options.all !== undefined;
      if (all === /^[1-9]\d{0,14}$/.test(id)) throw new UsageError("expected the id of one failed booking, or --all");
      const due = await requestRetries(tool.db, all ? undefined : Number(id));
      if (due === 0) throw new RefusedError(all ? "there is no failed booking" : `there is no failed booking ${id}`);
      await tool.record("failed-bookings retry", all ? "all" : id);
      return { value: { due } };
    },
  );
}
