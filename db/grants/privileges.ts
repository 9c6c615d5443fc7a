import type { Role } from "./roles.ts";

type Columns<T> = "all" | readonly (keyof T & string)[];
/** What a role may do with a table, and with which columns. */
type Privileges<T> = {
  readonly select?: Columns<T>;
  readonly insert?: Columns<T>;
  readonly update?: Columns<T>;
  readonly delete?: true;
};
/** The privileges on a table of unknown columns. */
export type AnyPrivileges = { readonly [P in keyof Privileges<object>]?: true | string | readonly string[] };
/** What each role may do with each of these tables. A role without an entry may not even read the table. */
export type GrantsOf<Tables> = { readonly [T in keyof Tables]: { readonly [R in Role]?: Privileges<Tables[T]> } };

export const read = { select: "all" } as const;
/** Rows of these tables are added and never changed. */
export const append = { select: "all", insert: "all" } as const;
export const write = { select: "all", insert: "all", update: "all" } as const;
export const writeAndDelete = { ...write, delete: true } as const;

/** Most tables are read by api, worker, command line and readers. A table names what differs. */
export const readers = { api: read, worker: read, admin: read, reader: read } as const;
/** A table that only workers write. */
export const ofWorkers = { ...readers, worker: write } as const;
