import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { addCleanup } from "./cleanups.ts";

/**
 * How long a server keeps an idle connection, milliseconds. With Node's 5 s, a process that stands still for a second on a busy
 * machine sends its next call on a connection that the server is closing.
 */
export const KEEP_ALIVE_MS = 60_000;

/** Makes a server listen on a free local port until the file is over. Returns its URL. */
export async function listen(server: Server): Promise<string> {
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  addCleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
