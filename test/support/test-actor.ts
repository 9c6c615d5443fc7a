import type { AuditActor } from "../../db/queries/audit-entries.ts";

/** Who makes changes in tests whose subject is not the audit log. */
export const testActor: AuditActor = { kind: "operator", id: "test", address: null };
