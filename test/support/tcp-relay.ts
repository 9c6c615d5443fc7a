import { connect, createServer, type Socket } from "node:net";
import { freePort } from "../../ops/local/ports.ts";
import { atEnd } from "./at-end.ts";

export type TcpRelay = {
  readonly port: number;
  /** Where new connections go; those that are open are reset. Undefined refuses them. */
  to(port: number | undefined): void;
  /** From now on nothing that the target says arrives: what it has said and is held back is lost. */
  freeze(): void;
};

/** A relay before a TCP server: it can hold back what the server says for a while, lose it, and change the server. */
export async function startTcpRelay({ target, lagMs = 0 }: { target?: number; lagMs?: number }): Promise<TcpRelay> {
  let current = target;
  let frozen = false;
  const open = new Set<Socket>();
  const server = createServer((caller) => {
    caller.on("error", () => undefined);
    if (current === undefined) return void caller.resetAndDestroy();
    const answerer = connect(current, "127.0.0.1");
    for (const socket of [caller, answerer]) {
      socket.setNoDelay(true);
      open.add(socket);
      socket.on("error", () => undefined).once("close", () => open.delete(socket));
    }
    const pass = (data: Buffer) => {
      if (!frozen && !caller.destroyed) caller.write(data);
    };
    answerer.on("data", (data: Buffer) => (lagMs > 0 ? void setTimeout(pass, lagMs, data) : pass(data)));
    answerer.once("close", () => caller.destroy());
    caller.once("close", () => answerer.destroy());
    caller.pipe(answerer);
  });
  const reset = () => {
    for (const socket of open) socket.resetAndDestroy();
  };
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  atEnd(() => {
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
