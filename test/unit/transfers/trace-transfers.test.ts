import { afterEach, expect, test } from "vitest";
import { openDb } from "../../../db/open.ts";
import { createLog } from "../../../runtime/log.ts";
import { openTracer } from "../../../runtime/tracing/open-tracer.ts";
import { setTracer } from "../../../runtime/tracing/spans.ts";
import { readPaymentTraces, traceTransfers } from "../../../transfers/trace-transfers.ts";

afterEach(() => setTracer(undefined));

test("transfers are relayed and booked, and webhooks sent, when the traces of their payments cannot be read", async () => {
  const ignore = () => undefined;
  const options = { endpoint: "http://127.0.0.1:1", headers: {}, resource: {}, onDropped: ignore, onExported: ignore };
  const { tracer } = openTracer({ ...options, ratio: 0 });
  setTracer(tracer);
  const lines: string[] = [];
  const log = createLog({ level: "debug", role: "worker" }, { write: (line) => void lines.push(line) });
  const db = openDb("postgres://127.0.0.1:1/none");
  const of = { chain: "eip155:1", transfers: [{ id: "trf_1", payment_id: "pay_1" }] };
  expect(await traceTransfers({ db, log }, "relay", of, async () => "relayed")).toBe("relayed");
  expect(await readPaymentTraces({ db, log }, ["pay_1"])).toEqual(new Map());
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: "warn", msg: "traces of payments cannot be read" },
    { level: "warn", msg: "traces of payments cannot be read" },
  ]);
  await db.destroy();
});
