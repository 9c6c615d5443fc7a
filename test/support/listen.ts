import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { addCleanup } from "./cleanups.ts";

/** Makes a server listen on a free local port until the file is over. Returns its URL. */
export async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  addCleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
