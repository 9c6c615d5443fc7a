import { randomInt } from "node:crypto";
import { mkdirSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { errorCode } from "../runtime/redaction.ts";

/** How long a port stays reserved for the process that received it, milliseconds: longer than a test restarts services on it. */
const RESERVED_MS = 600_000;

/**
 * Returns a port that no process listens on or has received within the last ten minutes, because many processes start services at
 * the same time. It is below 32768: the kernel uses ports from there on for outgoing connections, and could take the port
 * before the service listens.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const port = randomInt(15_000, 32_000);
    if (reserve(port) && (await isFree(port))) return port;
  }
  throw new Error("found no free port between 15000 and 32000");
}

/** Returns the first of two consecutive free ports. */
export async function freePair(): Promise<number> {
  for (;;) {
    const port = await freePort();
    if (reserve(port + 1) && (await isFree(port + 1))) return port;
  }
}

/** Reserves a port among all processes of this user. Returns false when it is reserved already. */
function reserve(port: number): boolean {
  const folder = join(tmpdir(), `pay-ports-${userInfo().uid}`);
  const file = join(folder, String(port));
  mkdirSync(folder, { recursive: true });
  try {
    writeFileSync(file, "", { flag: "wx" });
    return true;
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
  }
  const now = Date.now();
  if (now - statSync(file).mtimeMs < RESERVED_MS) return false;
  utimesSync(file, now / 1_000, now / 1_000);
  return true;
}

/** Returns true when no process listens on a port. */
export function isFree(port: number): Promise<boolean> {
  return listen(port).then(
    (server) => new Promise((resolve) => server.close(() => resolve(true))),
    () => false,
  );
}

/** Throws an error that names the port and its variable when another process listens on the port. */
export async function requireFreePort(port: number, what: string, variable: string): Promise<void> {
  try {
    const server = await listen(port);
    await new Promise((resolve) => server.close(resolve));
  } catch (cause) {
    throw new Error(
      `port ${port} for ${what} is in use: stop the process that listens there, or set ${variable} to another port`,
      {
        cause,
      },
    );
  }
}

function listen(port: number): Promise<ReturnType<typeof createServer>> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}
