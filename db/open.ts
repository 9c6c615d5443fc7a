import { Kysely, PostgresDialect, sql } from "kysely";
import pg from "pg";
import type { Db, Tables } from "./tables.ts";
import { wrapPool } from "./wrap-pool.ts";

const INT8 = 20;
const NUMERIC = 1700;

/** Heights and nonces are far below 2^53. A larger value is a bug, and rounding would hide it. */
function parseCount(text: string): number {
  const count = Number(text);
  if (!Number.isSafeInteger(count)) throw new Error("a bigint column holds more than a safe integer");
  return count;
}

const types: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: "text" | "binary") {
    if (oid === NUMERIC) return BigInt;
    if (oid === INT8) return parseCount;
    return format === "binary" ? pg.types.getTypeParser(oid, format) : pg.types.getTypeParser(oid, format);
  },
};

export type OpenOptions = {
  /** The maximum number of connections. 10 when unset. */
  max?: number;
  applicationName?: string;
  /** The timeout of one statement, milliseconds; 0 means none. 15 s when unset. */
  statementTimeoutMs?: number;
  /** Called after each statement with its duration in seconds; for metrics. */
  onStatement?: (seconds: number, failed: boolean) => void;
  /** Called when Postgres closes a connection; for logs. */
  onLostConnection?: (error: Error) => void;
  /** Called once when a pooler does not pass prepared statements on, and the pool stops preparing them; for logs. */
  onUnpreparable?: (error: Error) => void;
  /** Settings of Postgres with which each session begins. A pooler may refuse them. */
  settings?: Readonly<Record<string, number>>;
  /** Also uses a standby, which is read-only. Otherwise a connection that reaches one is closed. */
  acceptsStandby?: boolean;
};

/** How much later than Postgres the client ends a statement: Postgres' machine is gone then, milliseconds. */
const UNANSWERED_MS = 5_000;

/** Opens a pool, which connects with its first statement. Close it with `db.destroy()`. */
export function openDb(
  url: string,
  options: OpenOptions = {},
): Kysely<Tables> & { connections(): { used: number; idle: number; waiting: number } } {
  const statementTimeoutMs = options.statementTimeoutMs ?? 15_000;
  const pool = new pg.Pool({
    connectionString: url,
    max: options.max ?? 10,
    application_name: options.applicationName ?? "pay",
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    statement_timeout: statementTimeoutMs,
    // After the loss of a machine, TCP alone would wait for a quarter of an hour.
    ...(statementTimeoutMs > 0 ? { query_timeout: statementTimeoutMs + UNANSWERED_MS } : {}),
    idle_in_transaction_session_timeout: 15_000,
    ...(options.settings ? { options: describeSettings(options.settings) } : {}),
    types,
    ...(options.acceptsStandby ? {} : { verify: refuseStandby }),
  });
  // Without an error listener, a connection that Postgres closes (a restart) would end the process. The pool listens to
  // its idle connections only, so each connection gets a listener for the time between two statements of a transaction.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", (error) => options.onLostConnection?.(error)));
  const db = new Kysely<Tables>({
    dialect: new PostgresDialect({
      pool: wrapPool(pool, { onUnpreparable: (error) => options.onUnpreparable?.(error) }),
    }),
    log: (event) => options.onStatement?.(event.queryDurationMillis / 1000, event.level === "error"),
  });
  return Object.assign(db, {
    connections: () => ({
      used: pool.totalCount - pool.idleCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
    }),
  });
}

function describeSettings(settings: Readonly<Record<string, number>>): string {
  return Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value}`)
    .join(" ");
}

/**
 * Refuses a new connection to a standby. After a failover an address may lead to the old primary, or to a replica, for some
 * time; the pool then connects again until it reaches the primary, as with libpq's `target_session_attrs=read-write`.
 */
function refuseStandby(client: pg.PoolClient, done: (error?: Error) => void): void {
  client.query<{ standby: boolean }>("select pg_is_in_recovery() as standby").then(
    ({ rows }) => done(rows[0]?.standby ? new StandbyError() : undefined),
    (error: Error) => done(error),
  );
}

/** The server is a standby. The code is SQLSTATE read_only_sql_transaction, which its first write would return. */
class StandbyError extends Error {
  override readonly name = "StandbyError";
  readonly code = "25006";
  constructor() {
    super("the database server is a standby and not the primary");
  }
}

/** Returns true when Postgres answers. */
export async function isReachable(db: Db): Promise<boolean> {
  return sql`select 1`.execute(db).then(
    () => true,
    () => false,
  );
}
