import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * A port nobody listens on now. Not one of those the kernel gives to outgoing connections (from 32768 on): between our
 * look and the service's start such a connection could take it.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries += 1) {
    const port = randomInt(15_000, 32_000);
    if (await isFree(port)) return port;
  }
  throw new Error("no free port could be found between 15000 and 32000");
}

/** The same for two that follow one another; gives the first. */
export async function freePair(): Promise<number> {
  for (;;) {
    const port = await freePort();
    if (await isFree(port + 1)) return port;
  }
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
