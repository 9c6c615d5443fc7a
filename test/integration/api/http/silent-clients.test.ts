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
  const api = await startApi({ silenceMs });
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

test("a long poll of the longest time is answered, also on a kept connection", inRealTime, async () => {
  const api = await startApi({ silenceMs });
  const merchant = await makeMerchant(api);
  const id = await makePayment(api, merchant);
  const path = `/v1/gateway/payment/${id}/status?maxPollMs=${holdMs}`;
  for (let polls = 0; polls < 4; polls += 1) expect((await api.get(path, merchant.wallet)).status).toBe(200);
});
