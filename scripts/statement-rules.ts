import type {
  AlterTableCmd,
  AlterTableStmt,
  ColumnDef,
  Constraint,
  CreateStmt,
  DropStmt,
  IndexStmt,
  Node,
} from "libpg-query";
import { grants } from "../db/grants.ts";
import type { Added, Finding } from "./migration-findings.ts";
import { asCommand, isNull, joinName, listCalls, listParts, nameOfDropped, nameOfTable } from "./parse-tree.ts";
import { reviewRows } from "./row-rules.ts";

/** What the statements before have made of the schema. */
export type Known = {
  added: Added;
  /** Columns that an earlier migration has checked, so that SET NOT NULL reads no rows (see `listCheckedColumns`). */
  checked: ReadonlySet<string>;
};

/** Statements that only add objects, or change nothing that the former release uses. */
const HARMLESS = new Set([
  ...["CreateFunctionStmt", "CreateTrigStmt", "CreateEnumStmt", "CreateDomainStmt", "CompositeTypeStmt"],
  ...["CreateSeqStmt", "CreateExtensionStmt", "ViewStmt", "CommentStmt"],
]);
/** Statements that write rows. */
const ROWS = new Set(["InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt"]);
/** Changes of an existing table that need only a short lock and no rules. */
const HARMLESS_CHANGES = new Set(["AT_SetRelOptions", "AT_ResetRelOptions", "AT_SetStatistics", "AT_SetOptions"]);
/** Types of columns that no rule of this schema belongs to: adding such a column rewrites nothing and checks no row. */
const BASE_TYPES = new Set([
  ...["bool", "int2", "int4", "int8", "numeric", "float4", "float8", "text", "varchar", "bpchar", "bytea", "uuid"],
  ...["json", "jsonb", "date", "time", "timetz", "timestamp", "timestamptz", "interval", "inet", "cidr"],
]);

/** Returns the objects that a statement creates, as `kind name`; columns and constraints as `kind table.name`. */
export function listAdded(statement: Node): string[] {
  if ("CreateStmt" in statement) return [`table ${nameOfTable(statement.CreateStmt.relation)}`];
  if ("CreateEnumStmt" in statement) return [`type ${joinName(statement.CreateEnumStmt.typeName)}`];
  if (!("AlterTableStmt" in statement)) return [];
  const { relation, cmds = [] } = statement.AlterTableStmt;
  const table = nameOfTable(relation);
  return cmds.flatMap((cmd) => {
    const { subtype, def } = asCommand(cmd);
    if (subtype === "AT_AddColumn" && def && "ColumnDef" in def) return [`column ${table}.${def.ColumnDef.colname}`];
    return def && "Constraint" in def ? [`constraint ${table}.${def.Constraint.conname}`] : [];
  });
}

/** Returns what is wrong with one statement of a migration. */
export function reviewStatement(statement: Node, known: Known): Finding[] {
  const [kind = ""] = Object.keys(statement);
  const { added } = known;
  // IF NOT EXISTS creates nothing where the object exists, and it is then the former release's.
  if (
    kind !== "CreateExtensionStmt" &&
    listParts(statement).some((part) => part["if_not_exists"] || part["missing_ok"])
  )
    return [{ problem: "depends on what exists (IF EXISTS, IF NOT EXISTS), which a migration knows" }];
  if ("AlterTableStmt" in statement) return reviewAlterTable(statement.AlterTableStmt, known);
  if ("CreateStmt" in statement) return reviewNewTable(statement.CreateStmt);
  if ("DropStmt" in statement) return reviewDrop(statement.DropStmt, added);
  if ("IndexStmt" in statement) return reviewIndex(statement.IndexStmt, added);
  if ("RenameStmt" in statement)
    return [{ problem: "renames something: add the new name, copy, and remove the old one two releases later" }];
  if ("AlterEnumStmt" in statement) {
    const { typeName, oldVal } = statement.AlterEnumStmt;
    const type = joinName(typeName);
    if (oldVal !== undefined) return [{ problem: `renames the value ${oldVal} of ${type}` }];
    return added.has(`type ${type}`) ? [] : [{ problem: `adds a value to ${type}`, allowedBy: { documented: type } }];
  }
  if (ROWS.has(kind)) return reviewRows(statement, added);
  if ("SelectStmt" in statement)
    return [{ problem: "has a SELECT, which may change or lock rows: a migration does not depend on rows" }];
  if ("DoStmt" in statement) return [{ problem: "runs a DO block, which this check cannot read" }];
  if ("GrantStmt" in statement) return [{ problem: "changes privileges, which db/grants/ holds" }];
  return HARMLESS.has(kind) ? [] : [{ problem: `has a statement that this check does not know (${kind})` }];
}

function reviewNewTable({ relation, tableElts = [], inhRelations = [] }: CreateStmt): Finding[] {
  const table = nameOfTable(relation);
  // A temporary table hides the table of the same name.
  if (relation?.relpersistence !== "p") return [{ problem: `creates ${table}, which is temporary or unlogged` }];
  if (inhRelations.length > 0) return [{ problem: `creates ${table} as a part of another table, which it locks` }];
  return listConstraints(tableElts).flatMap((one) => reviewForeignKey(table, one));
}

function reviewIndex({ relation, idxname }: IndexStmt, added: Added): Finding[] {
  const table = nameOfTable(relation);
  if (added.has(`table ${table}`)) return [];
  return [{ problem: `builds the index ${idxname} while ${table} is locked: list it in concurrentIndexes` }];
}

function reviewDrop({ objects = [], removeType = "OBJECT_TABLE" }: DropStmt, added: Added): Finding[] {
  const kind = removeType.replace("OBJECT_", "").toLowerCase();
  return objects.flatMap((object): Finding[] => {
    const name = nameOfDropped(object);
    return added.has(`${kind} ${name}`) ? [] : [{ problem: `drops the ${kind} ${name}`, allowedBy: "contracts" }];
  });
}

function reviewAlterTable({ relation, cmds = [], objtype }: AlterTableStmt, known: Known): Finding[] {
  const table = nameOfTable(relation);
  if (objtype !== "OBJECT_TABLE" && objtype !== "OBJECT_INDEX")
    return [{ problem: `changes ${table}, which is no table` }];
  const commands = cmds.map(asCommand);
  if (known.added.has(`table ${table}`)) return listConstraints(cmds).flatMap((one) => reviewForeignKey(table, one));
  // A constraint that is dropped and added again under its name is widened; the new one needs an explanation anyway.
  const replaced = new Set(commands.flatMap(({ def }) => (def && "Constraint" in def ? def.Constraint.conname : [])));
  return commands.flatMap((command) => reviewChange(table, command, { ...known, replaced }));
}

function reviewChange(
  table: string,
  { subtype = "AT_AddColumn", name, def }: AlterTableCmd,
  { added, checked, replaced }: Known & { replaced: ReadonlySet<string | undefined> },
): Finding[] {
  const column = `${table}.${name}`;
  if (subtype === "AT_AddColumn" && def && "ColumnDef" in def) return reviewNewColumn(table, def.ColumnDef, added);
  if (subtype === "AT_AddConstraint" && def && "Constraint" in def) return reviewConstraint(table, def.Constraint);
  if (subtype === "AT_DropColumn")
    return added.has(`column ${column}`) ? [] : [{ problem: `drops the column ${column}`, allowedBy: "contracts" }];
  if (subtype === "AT_DropConstraint")
    return replaced.has(name) ? [] : [{ problem: `drops the constraint ${name} of ${table}`, allowedBy: "contracts" }];
  if (subtype === "AT_AlterColumnType") return [{ problem: `changes the type of ${column}: add another column` }];
  if (subtype === "AT_SetNotNull")
    return checked.has(column)
      ? [{ problem: `makes ${column} NOT NULL, and the former release may write null`, allowedBy: "contracts" }]
      : [
          {
            problem: `makes ${column} NOT NULL, which reads every row under a lock: add and validate \`check (${name} is not null)\` in earlier migrations`,
          },
        ];
  if (subtype === "AT_DropNotNull")
    return [
      { problem: `makes ${column} nullable, and the former release may not expect null`, allowedBy: "contracts" },
    ];
  if (subtype === "AT_ColumnDefault")
    return def && !isNull(def)
      ? []
      : [{ problem: `drops the default of ${column}, on which the former release may rely`, allowedBy: "contracts" }];
  if (subtype === "AT_ValidateConstraint")
    return added.has(`constraint ${table}.${name}`)
      ? [{ problem: `validates ${name} in the release that adds it: rows of the former release may still come` }]
      : [];
  return HARMLESS_CHANGES.has(subtype)
    ? []
    : [{ problem: `changes ${table} in a way that this check does not know (${subtype})` }];
}

function reviewNewColumn(table: string, { colname, typeName, constraints = [] }: ColumnDef, added: Added): Finding[] {
  const column = `${table}.${colname}`;
  const type = joinName(typeName?.names);
  const all = constraints.flatMap((one) => ("Constraint" in one ? [one.Constraint] : []));
  const has = (kind: Constraint["contype"]) => all.some(({ contype }) => contype === kind);
  const defaults = all.filter(({ contype, raw_expr }) => contype === "CONSTR_DEFAULT" && !isNull(raw_expr));
  const findings: (string | false)[] = [
    !BASE_TYPES.has(type.replace(/^pg_catalog\./, "")) &&
      !added.has(`type ${type}`) &&
      `has the type ${type}, which is no base type: it possibly rewrites the table or reads every row`,
    has("CONSTR_NOTNULL") && defaults.length === 0 && "is NOT NULL without a default",
    defaults.some(({ raw_expr }) => listCalls(raw_expr).length > 0) &&
      "has a default that is computed for each row, which rewrites the table",
    (has("CONSTR_GENERATED") || has("CONSTR_IDENTITY")) && "is generated, which rewrites the table",
    has("CONSTR_CHECK") && "has a CHECK, which reads every row under a lock: add it by itself, NOT VALID",
    (has("CONSTR_UNIQUE") || has("CONSTR_PRIMARY")) && "is unique, which builds an index while the table is locked",
    has("CONSTR_FOREIGN") &&
      has("CONSTR_DEFAULT") &&
      "is a foreign key with a default, which reads every row under a lock",
  ];
  return [
    ...findings.flatMap((found) => (found ? [{ problem: `the new column ${column} ${found}` }] : [])),
    ...all.flatMap((one) => reviewForeignKey(column, one)),
  ];
}

/** Returns the constraints of tables and columns in a part of a statement. */
function listConstraints(part: unknown): Constraint[] {
  return listParts(part).flatMap(({ Constraint: constraint }) =>
    constraint === undefined ? [] : [constraint as Constraint],
  );
}

/** Tables of which some role deletes rows. */
const deletable: ReadonlySet<string> = new Set(
  Object.entries(grants)
    .filter(([, ofRoles]) => Object.values(ofRoles).some((privileges) => "delete" in privileges))
    .map(([table]) => table),
);

/** A row that the former release deletes may be referenced by rows of which it does not know. */
function reviewForeignKey(subject: string, { contype, pktable, fk_del_action: action }: Constraint): Finding[] {
  const table = nameOfTable(pktable);
  if (contype !== "CONSTR_FOREIGN" || !deletable.has(table) || action === "c" || action === "n" || action === "d")
    return [];
  return [
    {
      problem: `${subject} references ${table} without ON DELETE, so the former release may not delete rows there`,
      allowedBy: { documented: table },
    },
  ];
}

function reviewConstraint(table: string, { contype, conname, skip_validation: isNotValid }: Constraint): Finding[] {
  const name = conname ?? "without a name";
  if (contype !== "CONSTR_CHECK" && contype !== "CONSTR_FOREIGN")
    return [
      {
        problem: `adds the key ${name} to ${table}, which builds an index under a lock and may refuse rows of the former release`,
      },
    ];
  if (!isNotValid)
    return [
      { problem: `adds the constraint ${name} to ${table} without NOT VALID, which reads every row under a lock` },
    ];
  return [
    {
      problem: `adds the constraint ${name} to ${table}, which may refuse rows of the former release`,
      allowedBy: { documented: name },
    },
  ];
}
