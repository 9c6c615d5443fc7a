import { createServer } from "node:net";

/** A port nobody listens on now. Taken from the kernel, so two callers hardly ever get the same one. */
export async function freePort(): Promise<number> {
  const server = await listen(0);
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no TCP port could be had");
  return address.port;
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
