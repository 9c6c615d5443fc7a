import type { Constraint, Node } from "libpg-query";
import { asCommand, joinName, nameOfTable } from "./parse-tree.ts";

/**
 * Returns the columns, as `table.column`, that a validated `check (COLUMN is not null)` covers after these statements. For such a
 * column SET NOT NULL reads no rows.
 */
export function listCheckedColumns(statements: readonly Node[]): ReadonlySet<string> {
  const checks = new Map<string, { column: string; isValid: boolean }>();
  for (const statement of statements) {
    if (!("AlterTableStmt" in statement)) continue;
    const { relation, cmds = [] } = statement.AlterTableStmt;
    const table = nameOfTable(relation);
    for (const { subtype, name, def } of cmds.map(asCommand)) {
      const check = checks.get(`${table}.${name}`);
      if (subtype === "AT_ValidateConstraint" && check) check.isValid = true;
      if (subtype === "AT_DropConstraint") checks.delete(`${table}.${name}`);
      if (subtype === "AT_DropColumn")
        for (const [key, { column }] of checks) if (column === `${table}.${name}`) checks.delete(key);
      if (subtype !== "AT_AddConstraint" || !def || !("Constraint" in def)) continue;
      const checked = findCheckedColumn(def.Constraint);
      const isValid = def.Constraint.skip_validation !== true;
      if (checked) checks.set(`${table}.${def.Constraint.conname}`, { column: `${table}.${checked}`, isValid });
    }
  }
  return new Set([...checks.values()].filter(({ isValid }) => isValid).map(({ column }) => column));
}

/** Returns the column that a constraint requires not to be null. */
function findCheckedColumn({ contype, is_enforced: isEnforced, raw_expr: test }: Constraint): string | undefined {
  if (contype !== "CONSTR_CHECK" || !isEnforced || !test || !("NullTest" in test)) return undefined;
  const { nulltesttype, arg } = test.NullTest;
  return nulltesttype === "IS_NOT_NULL" && arg && "ColumnRef" in arg ? joinName(arg.ColumnRef.fields) : undefined;
}
