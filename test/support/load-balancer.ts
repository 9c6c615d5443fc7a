import { connect, createServer, type Socket } from "node:net";
import { freePort } from "../../local/free-ports.ts";
import { addCleanup } from "./cleanups.ts";

/**
 * Starts a TCP load balancer for processes that come and go. A connection goes to the next target that accepts it, and
 * is reset when that target dies or when no target accepts it.
 */
export async function startLoadBalancer(): Promise<{ url: string; to(targets: () => string[]): void }> {
  let targets = (): string[] => [];
  let next = 0;
  const open = new Set<Socket>();
  const server = createServer({ pauseOnConnect: true }, (client) => {
    open.add(client);
    client.once("close", () => open.delete(client)).on("error", () => undefined);
    const list = targets();
    next += 1;
    connectToFirst(client, [...list.slice(next % list.length), ...list.slice(0, next % list.length)]);
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  addCleanup(() => {
    for (const client of open) client.destroy();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${port}`,
    to(listTargets) {
      targets = listTargets;
    },
  };
}

/** Connects a client to the first of these targets that accepts a connection. */
function connectToFirst(client: Socket, [first, ...others]: string[]): void {
  if (first === undefined) return void client.resetAndDestroy();
  const { hostname, port } = new URL(first);
  const api = connect(Number(port), hostname);
  const tryNext = (): void => connectToFirst(client, others);
  api.once("error", tryNext);
  api.once("connect", () => {
    api.off("error", tryNext).on("error", () => undefined);
    api.once("close", () => client.destroy());
    client.once("close", () => api.destroy());
    api.pipe(client);
    client.pipe(api);
    client.resume();
  });
}
