import type { InsertStmt, Node, RangeVar } from "libpg-query";
import type { Added, Finding } from "./migration-findings.ts";
import { listCalls, listParts, nameOfTable } from "./parse-tree.ts";

/** Statements that change rows, which may also stand in a WITH. */
const CHANGES = { UpdateStmt: "updates", DeleteStmt: "deletes", MergeStmt: "merges" } as const;

/** Returns what is wrong with a statement that writes rows. Plain inserts are allowed. */
export function reviewRows(statement: Node, added: Added): Finding[] {
  const parts = listParts(statement);
  const changed = parts.flatMap((part) => [
    ...Object.entries(CHANGES).flatMap(([kind, verb]) =>
      part[kind] === undefined ? [] : reviewChangedRows(verb, part[kind] as { relation?: RangeVar }, added),
    ),
    ...(isUpsert(part["InsertStmt"]) ? reviewChangedRows("updates", part["InsertStmt"], added) : []),
  ]);
  const calls = new Set(listCalls(statement));
  return [
    ...changed,
    ...(parts.some((part) => "lockingClause" in part) ? [{ problem: "locks rows that it reads" }] : []),
    ...[...calls].map((name) => ({
      problem: `calls ${name}, whose body this check cannot read`,
      allowedBy: { documented: name },
    })),
  ];
}

function isUpsert(insert: unknown): insert is InsertStmt {
  return (insert as InsertStmt | undefined)?.onConflictClause?.action === "ONCONFLICT_UPDATE";
}

/** Rows that a transaction changes stay locked until its end, and the former release waits for them. */
function reviewChangedRows(verb: string, { relation }: { relation?: RangeVar }, added: Added): Finding[] {
  const table = nameOfTable(relation);
  if (added.has(`table ${table}`)) return [];
  return [{ problem: `${verb} rows of ${table}: let workers fill them in batches`, allowedBy: { documented: table } }];
}
