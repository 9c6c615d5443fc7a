import { connect } from "node:net";
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

test("a long poll of the longest time is answered, also on a kept connection", inRealTime, async () => {
  const api = await startApi({ timeLimits: { silenceMs } });
  const merchant = await makeMerchant(api);
  const id = await makePayment(api, merchant);
  const path = `/v1/gateway/payment/${id}/status?maxPollMs=${holdMs}`;
  for (let polls = 0; polls < 4; polls += 1) expect((await api.get(path, merchant.wallet)).status).toBe(200);
});
