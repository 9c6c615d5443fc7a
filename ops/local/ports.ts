import { randomInt } from "node:crypto";
import { mkdirSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";

/** Whoever was given a port listens there by then, or never will, milliseconds. */
const RESERVED_MS = 60_000;

/**
 * A port nobody listens on, nor has been given for a minute: many processes start services at the same time. Not one of
 * those the kernel gives to outgoing connections (from 32768 on), which could take it before the service is up.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries += 1) {
    const port = randomInt(15_000, 32_000);
    if (reserve(port) && (await isFree(port))) return port;
  }
  throw new Error("no free port could be found between 15000 and 32000");
}

/** The same for two that follow one another; gives the first. */
export async function freePair(): Promise<number> {
  for (;;) {
    const port = await freePort();
    if (reserve(port + 1) && (await isFree(port + 1))) return port;
  }
}

/** Writes down for all processes of this user that a port is given; false when somebody has it already. */
function reserve(port: number): boolean {
  const folder = join(tmpdir(), `pay-ports-${userInfo().uid}`);
  const file = join(folder, String(port));
  mkdirSync(folder, { recursive: true });
  try {
    writeFileSync(file, "", { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const now = Date.now();
  if (now - statSync(file).mtimeMs < RESERVED_MS) return false;
  utimesSync(file, now / 1_000, now / 1_000);
  return true;
}

/** True when nobody listens there. */
export function isFree(port: number): Promise<boolean> {
  return listen(port).then(
    (server) => new Promise((resolve) => server.close(() => resolve(true))),
    () => false,
  );
}

/** Throws a sentence that names the port and the variable that moves it when somebody already listens there. */
export async function requireFreePort(port: number, what: string, variable: string): Promise<void> {
  try {
    const server = await listen(port);
    await new Promise((resolve) => server.close(resolve));
  } catch (cause) {
    throw new Error(`port ${port} for ${what} is taken: stop what listens there, or set ${variable} to another port`, {
      cause,
    });
  }
}

function listen(port: number): Promise<ReturnType<typeof createServer>> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}
