import { connect, createServer, type Socket } from "node:net";
import { freePort } from "../../ops/local/ports.ts";
import { atEnd } from "./at-end.ts";

/**
 * A load balancer before processes that come and go: a connection goes to the next one of them that takes it, and is cut
 * when that one dies or when none is there.
 */
export async function startBalancer(): Promise<{ url: string; to(targets: () => string[]): void }> {
  let targets = (): string[] => [];
  let turn = 0;
  const open = new Set<Socket>();
  const server = createServer({ pauseOnConnect: true }, (buyer) => {
    open.add(buyer);
    buyer.once("close", () => open.delete(buyer)).on("error", () => undefined);
    const list = targets();
    turn += 1;
    pass(buyer, [...list.slice(turn % list.length), ...list.slice(0, turn % list.length)]);
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  atEnd(() => {
    for (const buyer of open) buyer.destroy();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${port}`,
    to(next) {
      targets = next;
    },
  };
}

function pass(buyer: Socket, [first, ...others]: string[]): void {
  if (first === undefined) return void buyer.resetAndDestroy();
  const { hostname, port } = new URL(first);
  const api = connect(Number(port), hostname);
  const next = (): void => pass(buyer, others);
  api.once("error", next);
  api.once("connect", () => {
    api.off("error", next).on("error", () => undefined);
    api.once("close", () => buyer.destroy());
    buyer.once("close", () => api.destroy());
    api.pipe(buyer);
    buyer.pipe(api);
    buyer.resume();
  });
}
