import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { ConnectionError, PaymentClient } from "../../../client/index.ts";
import { inRealTime } from "../../support/in-real-time.ts";
import { json, startScriptedService } from "./scripted-service.ts";

const { baseUrl, requests, script } = await startScriptedService();
const client = new PaymentClient({ baseUrl, apiKey: "svc_test_1" });
/** A client for the tests of the limit of time. */
const limited = new PaymentClient({ baseUrl, apiKey: "svc_test_1", timeoutMs: 3_000 });
const month = { from: "2026-01-01", until: "2026-01-31" };
const firstLine = "at,kind\r\n";
type Answer = Parameters<typeof script>[0];

/** Begins a response of a hundred bytes, and goes on as given. */
const begin =
  (goOn: Answer = () => undefined): Answer =>
  (response) => {
    response.writeHead(200, { "content-type": "text/csv", "content-length": "100" });
    response.write(firstLine, () => goOn(response));
  };

test("a statement is asked for as CSV and read as it arrives, however long it takes in all", inRealTime, async () => {
  const lines = Array.from({ length: 6 }, (_, n) => `line ${n}\r\n`);
  script(async (response) => {
    response.writeHead(200, { "content-type": "text/csv" });
    for (const line of lines) {
      response.write(line);
      await pause(800);
    }
    response.end();
  });
  expect(await new Response(await limited.statements.csv(month)).text()).toBe(lines.join(""));
  expect(requests[0]?.headers.accept).toBe("text/csv, application/json");
});

test("a statement that stalls ends at the limit of time", inRealTime, async () => {
  script(begin());
  const reader = (await limited.statements.csv(month)).getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toBe(firstLine);
  const stalled = reader.read();
  await expect(stalled).rejects.toThrow(ConnectionError);
  await expect(stalled).rejects.toMatchObject({ code: "timeout" });
});

test("the time that a reader takes between two lines does not count", inRealTime, async () => {
  const { promise: resumed, resolve: resume } = Promise.withResolvers<void>();
  const rest = "x".repeat(100 - firstLine.length);
  script(begin((response) => void resumed.then(() => response.end(rest))));
  const reader = (await limited.statements.csv(month)).getReader();
  await reader.read();
  await pause(4_000);
  resume();
  expect((await reader.read()).value).toHaveLength(rest.length);
  expect(await reader.read()).toMatchObject({ done: true });
});

test("a statement that is cut off is an error of the connection", async () => {
  script(begin((response) => void response.destroy()));
  const reading = new Response(await client.statements.csv(month)).text();
  await expect(reading).rejects.toThrow(ConnectionError);
  await expect(reading).rejects.toMatchObject({ code: "connection_failed" });
});

test("a signal ends a statement with its reason, after it has begun", async () => {
  script(begin());
  const controller = new AbortController();
  const reader = (await client.statements.csv(month, { signal: controller.signal, timeoutMs: 60_000 })).getReader();
  await reader.read();
  const reason = new Error("the page was left");
  const reading = reader.read();
  controller.abort(reason);
  await expect(reading).rejects.toBe(reason);
});

test("a reader that stops early ends the request", async () => {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  script(begin((response) => void response.once("close", resolve)));
  const reader = (await client.statements.csv(month)).getReader();
  await reader.read();
  await reader.cancel();
  await closed;
});

test("a statement that is refused is the service's error", async () => {
  script(json(400, { code: "params_validation", message: "until: expected a day" }));
  await expect(client.statements.csv(month)).rejects.toMatchObject({ name: "InvalidRequestError", field: "until" });
});
