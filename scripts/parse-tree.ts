import type { AlterTableCmd, Node, RangeVar } from "libpg-query";

// How the rules read a statement that Postgres' parser has parsed. Names with a schema keep it, so `other.payment` is another
// table than `payment`.

/** Returns every part of a parsed statement, the statement itself included. */
export function listParts(part: unknown): Record<string, unknown>[] {
  if (typeof part !== "object" || part === null) return [];
  return [part as Record<string, unknown>, ...Object.values(part).flatMap(listParts)];
}

/** Returns the name of a table. */
export function nameOfTable({ schemaname, relname }: RangeVar = {}): string {
  return schemaname === undefined ? String(relname) : `${schemaname}.${relname}`;
}

/** Returns a name of one or several parts. */
export function joinName(parts: readonly Node[] = []): string {
  return parts.map((part) => ("String" in part ? part.String.sval : "")).join(".");
}

/** Returns the name of an object of a DROP. */
export function nameOfDropped(object: Node): string {
  if ("List" in object) return joinName(object.List.items);
  if ("ObjectWithArgs" in object) return joinName(object.ObjectWithArgs.objname);
  return "TypeName" in object ? joinName(object.TypeName.names) : joinName([object]);
}

/** Returns a command of an ALTER TABLE. */
export function asCommand(node: Node): AlterTableCmd {
  return "AlterTableCmd" in node ? node.AlterTableCmd : {};
}

/** Returns true for `null`, with or without a type. */
export function isNull(expression: Node | undefined): boolean {
  if (expression === undefined) return false;
  if ("TypeCast" in expression) return isNull(expression.TypeCast.arg);
  return "A_Const" in expression && expression.A_Const.isnull === true;
}

/** Functions of Postgres whose value is the same for every row of a statement. */
const STABLE_FUNCTIONS = new Set(["now", "transaction_timestamp", "statement_timestamp"]);

/** Returns the functions that a part of a statement calls, except those whose value is the same for every row. */
export function listCalls(part: unknown): string[] {
  return listParts(part).flatMap(({ FuncCall: call }) => {
    if (call === undefined) return [];
    const { funcname, args = [] } = call as { funcname?: Node[]; args?: Node[] };
    const name = joinName(funcname);
    return STABLE_FUNCTIONS.has(name) && args.length === 0 ? [] : [name];
  });
}
