import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { connect } from "node:net";
import type { FastifyReply, FastifyRequest } from "fastify";
import { expect, test, vi } from "vitest";
import { toHold } from "../../../../api/http/observe-requests.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { listen } from "../../../support/listen.ts";

/** Sends a request that gets no response. Returns its response, and how its client disconnects. */
async function openRequest() {
  const server = createServer();
  addCleanup(() => server.close());
  const socket = connect(Number(new URL(await listen(server)).port), "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nhost: shop.test\r\n\r\n");
  const [, raw] = (await once(server, "request")) as [unknown, ServerResponse];
  const hold = toHold({ heldMs: 0 } as FastifyRequest, { raw } as FastifyReply);
  const disconnect = async () => {
    const closed = once(raw, "close");
    socket.destroy();
    await closed;
  };
  return { hold, disconnect };
}

test("a long poll ends when its client disconnects", async () => {
  const { hold, disconnect } = await openRequest();
  const leave = vi.fn();
  hold.onGone(leave);
  expect(leave).not.toHaveBeenCalled();
  await disconnect();
  expect(leave).toHaveBeenCalledOnce();
});

test("a long poll whose client has disconnected before it begins ends at once", async () => {
  const { hold, disconnect } = await openRequest();
  await disconnect();
  const leave = vi.fn();
  hold.onGone(leave);
  expect(leave).toHaveBeenCalledOnce();
});
