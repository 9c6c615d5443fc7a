import { createBullBoard } from "@bull-board/api";
import { FastifyAdapter } from "@bull-board/fastify";
import { expect, test } from "vitest";
import { findAction, isFromElsewhere, isRead } from "../../../../ops/bull-board/allowed-writes.ts";

/** Every route of the board, as the bull-board package registers it. */
function boardRoutes() {
  const routes: { method: string; route: string }[] = [];
  const adapter = new FastifyAdapter();
  const setApiRoutes = adapter.setApiRoutes.bind(adapter);
  adapter.setApiRoutes = (given) => {
    for (const { method, route } of given)
      for (const path of [route].flat())
        for (const name of [method].flat()) routes.push({ method: name.toUpperCase(), route: path });
    return setApiRoutes(given);
  };
  createBullBoard({ queues: [], serverAdapter: adapter });
  return routes;
}

test("the filter allows exactly three of the board's writing routes", () => {
  const params = { queueName: "settle", jobId: "settle-1", queueStatus: "failed" };
  const writes = boardRoutes().filter(({ method }) => !isRead(method));
  expect(writes.length).toBeGreaterThan(20);
  expect(writes.filter((route) => findAction({ ...route, params })).map(({ route }) => route)).toEqual([
    "/api/queues/:queueName/retry/:queueStatus",
    "/api/queues/:queueName/:jobId/retry",
    "/api/queues/:queueName/:jobId/promote",
  ]);
});

test("an action names the queue and the job", () => {
  const params = { queueName: "settle", jobId: "settle-1" };
  expect(findAction({ method: "PUT", route: "/api/queues/:queueName/:jobId/retry", params })).toEqual({
    action: "job.retried",
    subject: "settle/settle-1",
  });
});

test("the filter rejects a retry of all completed jobs and every other method", () => {
  const route = "/api/queues/:queueName/retry/:queueStatus";
  expect(findAction({ method: "PUT", route, params: { queueStatus: "completed" } })).toBeUndefined();
  expect(findAction({ method: "POST", route, params: { queueStatus: "failed" } })).toBeUndefined();
  expect(findAction({ method: "PUT", route: undefined, params: {} })).toBeUndefined();
});

test.each([
  [{ "sec-fetch-site": "same-origin" }, false],
  [{ "sec-fetch-site": "same-site" }, true],
  [{ "sec-fetch-site": "cross-site" }, true],
  [{ "sec-fetch-site": "none" }, true],
  [{ origin: "http://board:8081", host: "board:8081" }, false],
  [{ origin: "http://evil.example", host: "board:8081" }, true],
  [{ origin: "null", host: "board:8081" }, true],
  [{ host: "board:8081" }, false],
])("headers %j come from elsewhere: %s", (headers, elsewhere) => {
  expect(isFromElsewhere(headers)).toBe(elsewhere);
});
