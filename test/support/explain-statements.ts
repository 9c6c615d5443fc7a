import pg from "pg";
import { vi } from "vitest";

type Statement = { text: string; values: readonly unknown[] };

/** Runs work and returns every statement that this process has sent to Postgres meanwhile, with its values. */
export async function listStatements(work: () => Promise<unknown>): Promise<Statement[]> {
  const spy = vi.spyOn(pg.Client.prototype, "query");
  try {
    await work();
    return spy.mock.calls.map(([query, values]) => {
      const config = query as unknown as { text?: string; values?: unknown[] };
      return { text: config.text ?? String(query), values: config.values ?? (values as unknown as unknown[]) ?? [] };
    });
  } finally {
    spy.mockRestore();
  }
}

/** Does the same, and returns each text once, with its last values. */
export async function captureStatements(work: () => Promise<unknown>): Promise<Statement[]> {
  const sent = await listStatements(work);
  return [...new Map(sent.map((statement) => [statement.text, statement])).values()];
}

type Plan = { "Node Type": string; "Relation Name"?: string; "Plan Rows": number; Plans?: Plan[] };

/** Returns the tables of which the plan of a statement reads every row. */
export async function listScannedTables(client: pg.Client, { text, values }: Statement): Promise<string[]> {
  const { rows } = await client.query({ text: `explain (format json) ${text}`, values: [...values] });
  const [{ Plan: root }] = rows[0]["QUERY PLAN"] as [{ Plan: Plan }];
  const nodes = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodes)];
  return nodes(root).flatMap((node) => (node["Node Type"] === "Seq Scan" ? (node["Relation Name"] ?? []) : []));
}
