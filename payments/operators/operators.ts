import { inTransaction } from "../../db/in-transaction.ts";
import { type AuditActor, type AuditEntry, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import {
  findOperator,
  insertOperator,
  listOperatorRows,
  lockOperators,
  type OperatorRow,
  updateOperator,
} from "../../db/queries/operators.ts";
import type { Db } from "../../db/tables.ts";
import type { Encrypt } from "../../runtime/encryption.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { hashPassword, makePassword } from "./passwords.ts";
import { makeTotpSecret, toTotpUri } from "./totp.ts";

/** `viewer` reads, `operator` also changes, `approver` also approves and manages operators. Each includes the one before. */
export type OperatorRole = OperatorRow["role"];
export const operatorRoles: readonly OperatorRole[] = ["viewer", "operator", "approver"];

export type OperatorView = { name: string; role: OperatorRole; createdAt: Date; disabledAt: Date | null };
/** What an operator logs in with. It is shown once. */
export type Credentials = { name: string; password: string; totp: string };

type Deps = Pick<PaymentDeps, "now"> & { db: Db };
type SecretDeps = Deps & { encryptTotpSecret: Encrypt };
type Named = { actor: AuditActor; name: string };

/** Returns true when a role includes another one. */
export function includesRole(role: OperatorRole, wanted: OperatorRole): boolean {
  return operatorRoles.indexOf(role) >= operatorRoles.indexOf(wanted);
}

/** Lists all operators by name. */
export async function listOperators({ db }: Pick<Deps, "db">): Promise<OperatorView[]> {
  const rows = await listOperatorRows(db);
  return rows.map(({ name, role, created_at, disabled_at }) => ({
    name,
    role,
    createdAt: created_at,
    disabledAt: disabled_at,
  }));
}

/**
 * Checks that a name may act in a role. Every name may while there are no operators. Refuses with `forbidden` an unknown
 * or disabled operator, and one without the role.
 */
export async function checkOperator(
  { db }: Pick<Deps, "db">,
  { name, role }: { name: string; role: OperatorRole },
): Promise<Result<{ name: string }>> {
  const rows = await listOperatorRows(db);
  const found = rows.find((row) => row.name === name && row.disabled_at === null);
  if (rows.length === 0) return done({ name });
  if (!found) return refuse("forbidden", `OPERATOR: there is no operator ${name}`);
  return includesRole(found.role, role)
    ? done({ name })
    : refuse("forbidden", `OPERATOR: ${name} is a ${found.role}; this needs the role ${role}`);
}

/**
 * Creates an operator with a random password and TOTP secret. Refuses with `invalid_params` an invalid name, a name that
 * exists, and a first operator who is not an approver: no one could manage operators then.
 */
export async function createOperator(
  deps: SecretDeps,
  { actor, name, role }: Named & { role: OperatorRole },
): Promise<Result<Credentials>> {
  if (!/^[a-z0-9][a-z0-9._@-]{0,63}$/.test(name))
    return refuse("invalid_params", "name: expected 1 to 64 lower-case letters, digits and . _ @ -");
  const { stored, credentials } = await makeCredentials(deps, name);
  return inTransaction(deps.db, async (db) => {
    await lockOperators(db);
    const rows = await listOperatorRows(db);
    if (rows.some((row) => row.name === name)) return refuse("invalid_params", `name: there is an operator ${name}`);
    if (rows.length === 0 && role !== "approver")
      return refuse("invalid_params", "role: the first operator must be an approver");
    await insertOperator(db, { name, role, ...stored, created_at: deps.now(), disabled_at: null });
    await record(deps, db, { actor, action: "operator.created", subject: name, before: null, after: { role } });
    return done(credentials);
  });
}

/** Disables an operator and ends their sessions. Refuses with `invalid_params` an unknown one and the last approver. */
export function disableOperator(deps: Deps, { actor, name }: Named): Promise<Result<{ name: string }>> {
  return changeOperator(deps, name, async (db, { role }) => {
    await updateOperator(db, name, { disabled_at: deps.now() });
    await record(deps, db, { actor, action: "operator.disabled", subject: name, before: { role }, after: null });
  });
}

/** Changes the role of an operator. Refuses like `disableOperator`. */
export function changeRole(
  deps: Deps,
  { actor, name, role }: Named & { role: OperatorRole },
): Promise<Result<{ name: string }>> {
  return changeOperator(
    deps,
    name,
    async (db, before) => {
      await updateOperator(db, name, { role });
      const entry = { actor, action: "operator.role_changed", subject: name };
      await record(deps, db, { ...entry, before: { role: before.role }, after: { role } });
    },
    { staysApprover: role === "approver" },
  );
}

/** Gives an operator a new password and a new TOTP secret, and ends their sessions. Refuses an unknown one. */
export async function resetCredentials(deps: SecretDeps, { actor, name }: Named): Promise<Result<Credentials>> {
  const { stored, credentials } = await makeCredentials(deps, name);
  const reset = await changeOperator(
    deps,
    name,
    async (db) => {
      await updateOperator(db, name, stored);
      const entry = { actor, action: "operator.credentials_reset", subject: name };
      await record(deps, db, { ...entry, before: null, after: null });
    },
    { staysApprover: true },
  );
  return reset.ok ? done(credentials) : reset;
}

async function changeOperator(
  deps: Deps,
  name: string,
  change: (db: Db, before: OperatorRow) => Promise<void>,
  { staysApprover = false } = {},
): Promise<Result<{ name: string }>> {
  return inTransaction(deps.db, async (db) => {
    await lockOperators(db);
    const before = await findOperator(db, name);
    if (!before || before.disabled_at !== null) return refuse("invalid_params", `there is no operator ${name}`);
    const approvers = (await listOperatorRows(db)).filter((row) => row.role === "approver" && !row.disabled_at);
    if (!staysApprover && approvers.every((row) => row.name === name))
      return refuse("invalid_params", `${name} is the last approver`);
    await change(db, before);
    return done({ name });
  });
}

async function makeCredentials({ encryptTotpSecret }: SecretDeps, name: string) {
  const [password, secret] = [makePassword(), makeTotpSecret()];
  const { keyId, ciphertext } = await encryptTotpSecret(secret, name);
  return {
    stored: { password_hash: await hashPassword(password), totp_key_id: keyId, totp_secret: ciphertext, totp_step: 0 },
    credentials: { name, password, totp: toTotpUri(name, secret) },
  };
}

function record({ now }: Pick<Deps, "now">, db: Db, entry: Omit<AuditEntry, "at">): Promise<void> {
  return insertAuditEntries(db, [{ ...entry, at: now() }]);
}
