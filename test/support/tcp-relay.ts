import { connect, createServer, type Socket } from "node:net";
import { freePort } from "../../local/free-ports.ts";
import { addCleanup } from "./cleanups.ts";

export type TcpRelay = {
  readonly port: number;
  /** Sets the port to which new connections go and resets open ones. Undefined refuses connections. */
  to(port: number | undefined): void;
  /** Drops everything that the target sends from now on, including data that is still delayed. */
  freeze(): void;
};

/** Starts a TCP relay that can delay or drop what the server sends, and switch to another server. */
export async function startTcpRelay({ target, lagMs = 0 }: { target?: number; lagMs?: number }): Promise<TcpRelay> {
  let current = target;
  let frozen = false;
  const open = new Set<Socket>();
  const server = createServer((caller) => {
    caller.on("error", () => undefined);
    if (current === undefined) return void caller.resetAndDestroy();
    const upstream = connect(current, "127.0.0.1");
    for (const socket of [caller, upstream]) {
      socket.setNoDelay(true);
      open.add(socket);
      socket.on("error", () => undefined).once("close", () => open.delete(socket));
    }
    const forward = (data: Buffer) => {
      if (!frozen && !caller.destroyed) caller.write(data);
    };
    upstream.on("data", (data: Buffer) => (lagMs > 0 ? void setTimeout(forward, lagMs, data) : forward(data)));
    upstream.once("close", () => caller.destroy());
    caller.once("close", () => upstream.destroy());
    caller.pipe(upstream);
  });
  const reset = () => {
    for (const socket of open) socket.resetAndDestroy();
  };
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  addCleanup(() => {
    reset();
    server.close();
  });
  return {
    port,
    to(next) {
      current = next;
      reset();
    },
    freeze() {
      frozen = true;
    },
  };
}
