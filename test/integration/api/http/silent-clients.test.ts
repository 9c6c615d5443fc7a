import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { addCleanup } from "../../../support/cleanups.ts";
import { inRealTime } from "../../../support/in-real-time.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { makeMerchant, makePayment, startApi } from "../start-api.ts";

/** In proportion to the longest long poll of this file as the api's limit is to its own: 72 s to 25 s. */
const silenceMs = 5_760;
const holdMs = 2_000;

test("a client that stops reading its responses is disconnected", async () => {
  const api = await startApi({ timeLimits: { silenceMs } });
  const { hostname, port } = new URL(api.url);
  const socket = connect({ host: hostname, port: Number(port) });
  addCleanup(async () => void socket.destroy());
  socket.on("error", () => undefined);
  socket.pause();
  // More than the buffers of both sides hold.
  const request = `GET /openapi.json HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`;
  socket.write(request.repeat(200));
  await waitFor(async () => (await api.countConnections()) === 1, { within: 20_000 });
  await waitFor(async () => (await api.countConnections()) === 0, { within: 20_000 });
});

test("a client whose body arrives byte by byte is refused when the time for a request is over", async () => {
  const api = await startApi({ timeLimits: { requestMs: 1_000 } });
  const merchant = await makeMerchant(api);
  const { hostname, port } = new URL(api.url);
  const socket = connect({ host: hostname, port: Number(port) });
  addCleanup(async () => void socket.destroy());
  socket.on("error", () => undefined);
  let answer = "";
  socket.on("data", (bytes) => {
    answer += bytes;
  });
  const headers = { host: hostname, ...merchant.headers, "content-type": "application/json", "content-length": 60_000 };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`POST /v1/payments HTTP/1.1\r\n${lines.join("")}\r\n{`);
  const drip = setInterval(() => socket.write(" "), 100);
  addCleanup(async () => clearInterval(drip));
  await waitFor(async () => socket.destroyed, { within: 20_000 });
  expect(answer).toContain("HTTP/1.1 408 Request Timeout");
});

/** Opens a connection that sends nothing until the time that a request may take is over. */
async function openInAdvance() {
  const requestMs = 500;
  const api = await startApi({ timeLimits: { requestMs } });
  const { hostname, port } = new URL(api.url);
  const socket = connect({ host: hostname, port: Number(port) });
  addCleanup(async () => void socket.destroy());
  socket.on("error", () => undefined);
  const received = { text: "" };
  socket.on("data", (bytes) => {
    received.text += bytes;
  });
  // Until Node has compared it with the limit.
  await pause(3 * requestMs);
  return { socket, received, request: `GET /livez HTTP/1.1\r\nhost: ${hostname}\r\n\r\n` };
}

test("a connection that a load balancer opens in advance serves a request after the time that a request may take", async () => {
  const { socket, received, request } = await openInAdvance();
  socket.write(request);
  await waitFor(async () => received.text !== "", { within: 20_000 });
  expect(received.text).toContain("HTTP/1.1 200 OK");
});

test("a client that sends its headers byte by byte on a connection that it has opened in advance is refused", async () => {
  const { socket, received, request } = await openInAdvance();
  const bytes = [...request.slice(0, -1)];
  const drip = setInterval(() => socket.write(bytes.shift() ?? "x"), 100);
  addCleanup(async () => clearInterval(drip));
  await waitFor(async () => socket.destroyed, { within: 20_000 });
  expect(received.text).toContain("HTTP/1.1 408 Request Timeout");
});

test("a connection on which no request comes is closed when it has been silent for too long", async () => {
  const api = await startApi({ timeLimits: { silenceMs: 2_000, requestMs: 500 } });
  const { hostname, port } = new URL(api.url);
  const socket = connect({ host: hostname, port: Number(port) });
  addCleanup(async () => void socket.destroy());
  await waitFor(async () => (await api.countConnections()) === 1, { within: 20_000 });
  await waitFor(async () => (await api.countConnections()) === 0, { within: 20_000 });
});

test("a long poll of the longest time is answered, also on a kept connection", inRealTime, async () => {
  const api = await startApi({ timeLimits: { silenceMs } });
  const merchant = await makeMerchant(api);
  const id = await makePayment(api, merchant);
  const path = `/v1/gateway/payment/${id}/status?maxPollMs=${holdMs}`;
  for (let polls = 0; polls < 4; polls += 1) expect((await api.get(path, merchant.wallet)).status).toBe(200);
});
