import type {
  AlterTableCmd,
  AlterTableStmt,
  ColumnDef,
  Constraint,
  CreateStmt,
  DropStmt,
  IndexStmt,
  Node,
  RangeVar,
} from "libpg-query";
import { grants } from "../db/grants.ts";

/**
 * What a statement does that the former release cannot work with, or that blocks it for long.
 *
 * `allowedBy` says which declaration of the migration allows it: `contracts` for what removes something, or the name
 * (of a constraint, type or table) that `documented` has to explain. Nothing allows the others.
 */
export type Finding = { problem: string; allowedBy?: "contracts" | { documented: string } };

/** Objects that the migrations of the same release create. The former release does not know them, so they may change. */
export type Added = ReadonlySet<string>;

/** Functions whose value is the same for every row of a statement, so a column with such a default rewrites no table. */
const STABLE_FUNCTIONS = new Set(["now", "transaction_timestamp", "statement_timestamp"]);
/** Statements that only add objects, or change nothing that the former release uses. */
const HARMLESS = new Set([
  ...["CreateFunctionStmt", "CreateTrigStmt", "CreateEnumStmt", "CreateDomainStmt", "CreateSeqStmt"],
  ...[
    "CreateExtensionStmt",
    "ViewStmt",
    "CommentStmt",
    "InsertStmt",
    "SelectStmt",
    "VariableSetStmt",
    "CompositeTypeStmt",
  ],
]);
/** Changes of an existing table that need only a short lock and no rules. */
const HARMLESS_CHANGES = new Set(["AT_SetRelOptions", "AT_ResetRelOptions", "AT_SetStatistics", "AT_SetOptions"]);

/** Returns the kind and the content of a parsed statement, for example `DropStmt`. */
function open(statement: Node): [kind: string, content: unknown] {
  return Object.entries(statement)[0] ?? ["", undefined];
}

/** Returns the objects that a statement creates, as `kind name`; a column as `column table.name`. */
export function listAdded(statement: Node): string[] {
  const [kind] = open(statement);
  if ("CreateStmt" in statement) return [`table ${statement.CreateStmt.relation?.relname}`];
  if ("CreateTableAsStmt" in statement) return [`table ${statement.CreateTableAsStmt.into?.rel?.relname}`];
  if ("ViewStmt" in statement) return [`view ${statement.ViewStmt.view?.relname}`];
  if ("CreateEnumStmt" in statement) return [`type ${lastName(statement.CreateEnumStmt.typeName)}`];
  if ("IndexStmt" in statement) return [`index ${statement.IndexStmt.idxname}`];
  if ("CreateFunctionStmt" in statement && !statement.CreateFunctionStmt.replace)
    return [`function ${lastName(statement.CreateFunctionStmt.funcname)}`];
  if ("CreateTrigStmt" in statement && !statement.CreateTrigStmt.replace)
    return [`trigger ${statement.CreateTrigStmt.trigname}`];
  if (kind !== "AlterTableStmt") return [];
  const { relation, cmds = [] } = (statement as { AlterTableStmt: AlterTableStmt }).AlterTableStmt;
  return cmds.flatMap((cmd) => {
    const { subtype, def } = asCommand(cmd);
    if (def === undefined) return [];
    if (subtype === "AT_AddColumn" && "ColumnDef" in def)
      return [`column ${relation?.relname}.${def.ColumnDef.colname}`];
    if (subtype === "AT_AddConstraint" && "Constraint" in def) return [`constraint ${def.Constraint.conname}`];
    return [];
  });
}

/** Returns what is wrong with one statement of a migration. */
export function reviewStatement(statement: Node, added: Added): Finding[] {
  const [kind] = open(statement);
  if ("AlterTableStmt" in statement) return reviewAlterTable(statement.AlterTableStmt, added);
  if ("CreateStmt" in statement) return reviewNewTable(statement.CreateStmt);
  if ("DropStmt" in statement) return reviewDrop(statement.DropStmt, added);
  if ("IndexStmt" in statement) return reviewIndex(statement.IndexStmt, added);
  if ("RenameStmt" in statement)
    return [{ problem: "renames something: add the new name, copy, and remove the old one two releases later" }];
  if ("AlterEnumStmt" in statement) {
    const { typeName, oldVal } = statement.AlterEnumStmt;
    const type = lastName(typeName);
    if (oldVal !== undefined) return [{ problem: `renames the value ${oldVal} of ${type}` }];
    return added.has(`type ${type}`) ? [] : [{ problem: `adds a value to ${type}`, allowedBy: { documented: type } }];
  }
  if ("UpdateStmt" in statement) return reviewChangedRows("updates", statement.UpdateStmt.relation, added);
  if ("DeleteStmt" in statement) return reviewChangedRows("deletes", statement.DeleteStmt.relation, added);
  if ("DoStmt" in statement) return [{ problem: "runs a DO block, which this check cannot read" }];
  if ("GrantStmt" in statement) return [{ problem: "changes privileges, which db/grants.ts holds" }];
  return HARMLESS.has(kind) ? [] : [{ problem: `has a statement that this check does not know (${kind})` }];
}

function reviewNewTable({ relation, tableElts = [] }: CreateStmt): Finding[] {
  const table = String(relation?.relname);
  const constraints = tableElts.flatMap((one) => ("ColumnDef" in one ? (one.ColumnDef.constraints ?? []) : [one]));
  return constraints.flatMap((one) =>
    "Constraint" in one && one.Constraint.contype === "CONSTR_FOREIGN" ? reviewForeignKey(table, one.Constraint) : [],
  );
}

/** Rows that a transaction changes stay locked until its end, and the former release waits for them. */
function reviewChangedRows(verb: string, relation: RangeVar | undefined, added: Added): Finding[] {
  const table = String(relation?.relname);
  if (added.has(`table ${table}`)) return [];
  return [{ problem: `${verb} rows of ${table}: let workers fill them in batches`, allowedBy: { documented: table } }];
}

function reviewIndex({ relation, idxname }: IndexStmt, added: Added): Finding[] {
  const table = String(relation?.relname);
  if (added.has(`table ${table}`)) return [];
  return [{ problem: `builds the index ${idxname} while ${table} is locked: list it in concurrentIndexes` }];
}

function reviewDrop({ objects = [], removeType = "OBJECT_TABLE" }: DropStmt, added: Added): Finding[] {
  const kind = removeType.replace("OBJECT_", "").toLowerCase();
  return objects.flatMap((object): Finding[] => {
    const name = nameOf(object);
    return added.has(`${kind} ${name}`) ? [] : [{ problem: `drops the ${kind} ${name}`, allowedBy: "contracts" }];
  });
}

function reviewAlterTable({ relation, cmds = [], objtype }: AlterTableStmt, added: Added): Finding[] {
  const table = String(relation?.relname);
  if (objtype !== "OBJECT_TABLE" && objtype !== "OBJECT_INDEX")
    return [{ problem: `changes ${table}, which is no table` }];
  if (added.has(`table ${table}`)) return [];
  const commands = cmds.map(asCommand);
  // A constraint that is dropped and added again under its name is widened; the new one needs an explanation anyway.
  const replaced = new Set(
    commands.flatMap(({ subtype, def }) =>
      subtype === "AT_AddConstraint" && def && "Constraint" in def ? [def.Constraint.conname] : [],
    ),
  );
  return commands.flatMap((command) => reviewChange(table, command, { added, replaced }));
}

function reviewChange(
  table: string,
  { subtype = "AT_AddColumn", name, def }: AlterTableCmd,
  { added, replaced }: { added: Added; replaced: ReadonlySet<string | undefined> },
): Finding[] {
  const column = `${table}.${name}`;
  if (added.has(`column ${column}`)) return [];
  if (subtype === "AT_AddColumn" && def && "ColumnDef" in def) return reviewNewColumn(table, def.ColumnDef);
  if (subtype === "AT_AddConstraint" && def && "Constraint" in def) return reviewConstraint(table, def.Constraint);
  if (subtype === "AT_DropColumn") return [{ problem: `drops the column ${column}`, allowedBy: "contracts" }];
  if (subtype === "AT_DropConstraint")
    return replaced.has(name) ? [] : [{ problem: `drops the constraint ${name} of ${table}`, allowedBy: "contracts" }];
  if (subtype === "AT_AlterColumnType") return [{ problem: `changes the type of ${column}: add another column` }];
  if (subtype === "AT_SetNotNull")
    return [{ problem: `makes ${column} NOT NULL, and the former release may write null`, allowedBy: "contracts" }];
  if (subtype === "AT_DropNotNull")
    return [
      { problem: `makes ${column} nullable, and the former release may not expect null`, allowedBy: "contracts" },
    ];
  if (subtype === "AT_ColumnDefault")
    return def
      ? []
      : [{ problem: `drops the default of ${column}, on which the former release may rely`, allowedBy: "contracts" }];
  if (subtype === "AT_ValidateConstraint")
    return added.has(`constraint ${name}`)
      ? [{ problem: `validates ${name} in the release that adds it: rows of the former release may still come` }]
      : [];
  return HARMLESS_CHANGES.has(subtype)
    ? []
    : [{ problem: `changes ${table} in a way that this check does not know (${subtype})` }];
}

function reviewNewColumn(table: string, { colname, typeName, constraints = [] }: ColumnDef): Finding[] {
  const column = `${table}.${colname}`;
  const all = constraints.flatMap((one) => ("Constraint" in one ? [one.Constraint] : []));
  const has = (type: Constraint["contype"]) => all.some(({ contype }) => contype === type);
  const findings: (string | false)[] = [
    has("CONSTR_NOTNULL") && !has("CONSTR_DEFAULT") && "is NOT NULL without a default",
    all.some(({ contype, raw_expr }) => contype === "CONSTR_DEFAULT" && callsPerRow(raw_expr)) &&
      "has a default that is computed for each row, which rewrites the table",
    (has("CONSTR_GENERATED") || has("CONSTR_IDENTITY") || /serial/.test(lastName(typeName?.names))) &&
      "is generated, which rewrites the table",
    has("CONSTR_CHECK") && "has a CHECK, which reads every row under a lock: add it by itself, NOT VALID",
    (has("CONSTR_UNIQUE") || has("CONSTR_PRIMARY")) && "is unique, which builds an index while the table is locked",
  ];
  return [
    ...findings.flatMap((found) => (found ? [{ problem: `the new column ${column} ${found}` }] : [])),
    ...all.filter(({ contype }) => contype === "CONSTR_FOREIGN").flatMap((key) => reviewForeignKey(column, key)),
  ];
}

/** Tables of which some role deletes rows. */
const deletable: ReadonlySet<string> = new Set(
  Object.entries(grants)
    .filter(([, ofRoles]) => Object.values(ofRoles).some((privileges) => "delete" in privileges))
    .map(([table]) => table),
);

/** A row that the former release deletes may be referenced by rows of which it does not know. */
function reviewForeignKey(subject: string, { pktable, fk_del_action: action }: Constraint): Finding[] {
  const table = String(pktable?.relname);
  if (!deletable.has(table) || action === "c" || action === "n" || action === "d") return [];
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

/** Returns true for an expression that calls a function whose value may differ from row to row. */
function callsPerRow(expression: unknown): boolean {
  if (typeof expression !== "object" || expression === null) return false;
  const { FuncCall: call } = expression as { FuncCall?: { funcname?: Node[] } };
  if (call && !STABLE_FUNCTIONS.has(lastName(call.funcname))) return true;
  return Object.values(expression).some(callsPerRow);
}

function asCommand(node: Node): AlterTableCmd {
  return "AlterTableCmd" in node ? node.AlterTableCmd : {};
}

/** Returns the last part of a qualified name. */
function lastName(parts: readonly Node[] = []): string {
  const last = parts.at(-1);
  return last && "String" in last ? String(last.String.sval) : "";
}

/** Returns the name of an object of a DROP. */
function nameOf(object: Node): string {
  if ("List" in object) return lastName(object.List.items);
  if ("ObjectWithArgs" in object) return lastName(object.ObjectWithArgs.objname);
  if ("TypeName" in object) return lastName(object.TypeName.names);
  return "String" in object ? String(object.String.sval) : "";
}
