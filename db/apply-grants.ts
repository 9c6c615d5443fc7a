import { sql, type Transaction } from "kysely";
import { memberNames } from "../runtime/member-names.ts";
import { errorCode } from "../runtime/redaction.ts";
import { callable } from "./grants/callable-functions.ts";
import type { AnyPrivileges } from "./grants/privileges.ts";
import { roles } from "./grants/roles.ts";
import { grants } from "./grants.ts";
import type { Pool, Tables } from "./tables.ts";

/** SQLSTATE: another database's migration has just created the role. */
const EXISTS = new Set(["42710", "23505"]);
/** SQLSTATE insufficient_privilege. */
const NOT_ALLOWED = "42501";

/**
 * Creates the roles that do not exist and gives each its privileges (db/grants.ts). Repeatable. It locks no table, and other
 * sessions see either the former privileges or the new ones.
 * The first call after a migration also takes away every other privilege from the roles. Later ones do so only from `public`:
 * another release with this schema may need them.
 *
 * Throws an error with the statements for an administrator when a role is missing and may not be created.
 */
export async function applyGrants(db: Pool): Promise<void> {
  await createRoles(db);
  await db.transaction().execute(async (trx) => {
    const { rows } = await sql<{ signature: string }>`
      select p.oid::regprocedure::text as signature from pg_proc p
      where p.pronamespace = 'public'::regnamespace and pg_get_userbyid(p.proowner) = current_user
        and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')`.execute(
      trx,
    );
    const functions = rows.map(({ signature }) => signature);
    const from = (await isFirstSince(trx)) ? ["public", ...Object.values(roles)] : ["public"];
    await sql.raw(buildGrants(functions, from.join(", "))).execute(trx);
  });
}

/** Notes the newest migration that has run. Returns true when no earlier call that was committed has noted it. */
async function isFirstSince(db: Transaction<Tables>): Promise<boolean> {
  const { rows } = await sql`
    insert into revoked_grants (migration) select max(name) from kysely_migration
    on conflict (only_row) do update set migration = excluded.migration
    where revoked_grants.migration <> excluded.migration returning migration`.execute(db);
  return rows.length > 0;
}

/** Roles belong to the whole server, so migrations of several databases may create them at the same time. */
async function createRoles(db: Pool): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select name from unnest(${Object.values(roles)}::text[]) as name
    where not exists (select from pg_roles where rolname = name)`.execute(db);
  const statements = rows.map(({ name }) => `create role ${name} nologin`);
  for (const statement of statements)
    await sql
      .raw(statement)
      .execute(db)
      .catch((error: unknown) => {
        const code = errorCode(error);
        if (code === NOT_ALLOWED)
          throw new Error(
            `the role of DATABASE_URL may not create roles; as an administrator run: ${statements.join("; ")}`,
          );
        if (!EXISTS.has(String(code))) throw error;
      });
}

/** Builds the statements. `functions` are the signatures of all functions of the schema; `from` loses its other privileges. */
function buildGrants(functions: readonly string[], from: string): string {
  const tables = memberNames(grants);
  return [
    "revoke create on schema public from public",
    `grant usage on schema public to ${Object.values(roles).join(", ")}`,
    // A revocation for a table includes its columns.
    `revoke all on table ${tables.join(", ")} from ${from}`,
    ...tables.flatMap((table) =>
      memberNames(grants[table]).flatMap((role) =>
        describePrivileges(grants[table][role] ?? {}).map(
          (privilege) => `grant ${privilege} on table ${table} to ${roles[role]}`,
        ),
      ),
    ),
    // Otherwise a role could run a trigger function with its owner's privileges, by a trigger on a table of its own.
    ...functions.map((signature) => `revoke all on function ${signature} from ${from}`),
    ...memberNames(callable).flatMap((signature) =>
      (callable[signature] ?? []).map((role) => `grant execute on function ${signature} to ${roles[role]}`),
    ),
  ].join(";\n");
}

/** Lists privileges as SQL, for example `update (state, due_at)`. */
function describePrivileges(privileges: AnyPrivileges): string[] {
  return memberNames(privileges).map((name) => {
    const columns = privileges[name];
    return typeof columns === "object" ? `${name} (${columns.join(", ")})` : name;
  });
}
