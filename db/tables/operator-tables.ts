import type { ColumnType, Generated } from "kysely";

export type OperatorTables = {
  operator: {
    name: string;
    role: "viewer" | "operator" | "approver";
    password_hash: string;
    /** The data key that encrypted `totp_secret`. */
    totp_key_id: string;
    totp_secret: Buffer;
    /** The newest 30-second step whose code was accepted. */
    totp_step: Generated<number>;
    created_at: Date;
    disabled_at: Date | null;
  };
  operator_session: {
    token_hash: Buffer;
    operator: string;
    address: string;
    created_at: Generated<Date>;
    expires_at: Generated<Date>;
  };
  /** Logins that were refused or are being checked; `operator` is the name that was given. */
  operator_login_attempt: { id: Generated<number>; operator: string; address: string; at: Date };
  /** What operators request on the pages of the console. */
  operator_request: {
    id: string;
    operator: string;
    address: string;
    action: string;
    subject: string;
    args: ColumnType<Record<string, string>, string, never>;
    requested_at: Generated<Date>;
    state: Generated<"requested" | "done" | "refused">;
    /** One sentence for the operator. */
    outcome: string | null;
    ended_at: Date | null;
  };
};
