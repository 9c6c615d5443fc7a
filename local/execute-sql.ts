import pg from "pg";

/** How long a connection is kept for the next statements. Nothing waits longer for a database without connections. */
const KEPT_MS = 100;

/** The connections by URL. A test that polls would otherwise connect for each statement, which costs more than the statement. */
const pools = new Map<string, pg.Pool>();

/** Runs statements on one connection and returns the rows of the last one. They must not change the session's settings. */
export async function execute(url: string, ...statements: string[]): Promise<Record<string, unknown>[]> {
  const client = await poolOf(url).connect();
  try {
    let rows: Record<string, unknown>[] = [];
    for (const statement of statements) rows = (await client.query(statement)).rows;
    client.release();
    return rows;
  } catch (error) {
    // The statements may have begun a transaction, or the server may be gone.
    client.release(true);
    throw error;
  }
}

function poolOf(url: string): pg.Pool {
  const known = pools.get(url);
  if (known !== undefined) return known;
  const pool = new pg.Pool({ connectionString: url, idleTimeoutMillis: KEPT_MS, allowExitOnIdle: true });
  // Without a listener, a connection that breaks would end this process.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  pools.set(url, pool);
  return pool;
}

/** Returns the URL of another database on the same server. */
export function namedDatabase(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}
