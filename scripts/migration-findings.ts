/**
 * What a statement does that the former release cannot work with, or that blocks it for long.
 *
 * `allowedBy` says which declaration of the migration allows it: `contracts` for what removes something, or the name
 * (of a constraint, type, table or function) that `documented` has to explain. Nothing allows the others.
 */
export type Finding = { problem: string; allowedBy?: "contracts" | { documented: string } };

/**
 * The tables, columns, enum types and constraints that earlier statements of the same release create, as `kind name`. The former
 * release does not know them, so they may change.
 */
export type Added = ReadonlySet<string>;
