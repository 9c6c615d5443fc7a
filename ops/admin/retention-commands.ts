import type { Command } from "commander";
import { listRetentionStatus, type RetentionStatus } from "../../db/queries/retention.ts";
import { type AddAction, show } from "./command.ts";

/** Payments counted as due. */
const MOST_DUE = 100_000;

/** Adds the command that shows what leaves the tables of history. */
export function addRetentionCommands(program: Command, addAction: AddAction): void {
  const retention = program.command("retention").description("the history of payments and when it leaves");
  addAction(
    retention
      .command("status")
      .description("show each table's size and the payments whose rows are due to leave")
      .addHelpText(
        "after",
        `
\`due\` counts payments whose rows have not been removed yet (up to ${MOST_DUE.toLocaleString("en")}), \`kept\` those that were passed because some
rows had to stay, and \`failing\` those whose rows cannot be removed. The days are those of the workers (RETENTION_DAYS).`,
      ),
    async (context) => {
      const rows = await listRetentionStatus(context.db, { now: context.now(), limit: MOST_DUE });
      return { value: rows.map(describeTable) };
    },
  );
}

function describeTable(row: RetentionStatus) {
  return {
    table: row.relation,
    days: row.days ?? "forever",
    megabytes: Math.round(row.bytes / 2 ** 20),
    due: row.due,
    kept: row.retained,
    failing: row.failing,
    removed: row.removed,
    ran: row.ran_at === null ? "never" : show(row.ran_at).slice(0, 19),
  };
}
