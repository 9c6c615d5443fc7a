import type { AuditActor } from "../../db/queries/audit-entries.ts";

/** The actor of changes that a test makes itself. */
export const testOperator: AuditActor = { kind: "operator", id: "test", address: null };
