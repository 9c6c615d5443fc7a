import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, expect, test } from "vitest";
import { forwardEvent } from "../../../cli/forward-event.ts";
import type { Event } from "../../../client/index.ts";
import { freePort } from "../../../local/free-ports.ts";

let arrived = 0;
let answer: (response: ServerResponse) => void = (response) => response.end();
const server = createServer((_request, response) => {
  arrived += 1;
  answer(response);
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
afterAll(() => server.close());

const event = { id: "evt_1", type: "payment.succeeded", created_at: "2026-01-01T00:00:00.000Z", data: {} } as Event;
const { signal } = new AbortController();

function forwardTo(url: string) {
  const onUnreachable = () => {
    throw new Error("the receiver is not reachable");
  };
  return forwardEvent(event, { url, secret: "whsec_bWluZQ==", signal, onUnreachable });
}

const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;

test("a receiver that ends each connection without a response gets an event four times, and the outcome says so", async () => {
  arrived = 0;
  answer = (response) => void response.destroy();
  expect(await forwardTo(url)).toEqual({ error: expect.stringMatching(/^[A-Z_]+$/), ms: expect.any(Number) });
  expect(arrived).toBe(4);
});

test("a receiver that restarts while it reads an event gets it again", async () => {
  arrived = 0;
  answer = (response) => void (arrived === 1 ? response.destroy() : response.end());
  expect(await forwardTo(url)).toMatchObject({ status: 200 });
  expect(arrived).toBe(2);
});

test.each([
  ["a name that is not resolved", "http://receiver.invalid/"],
  ["a network without a route", "http://224.0.0.1:8080/"],
  ["a port where nothing listens", `http://127.0.0.1:${await freePort()}/`],
])("an event waits for a receiver at %s", async (_what, nowhere) => {
  await expect(forwardTo(nowhere)).rejects.toThrow("is not reachable");
});
