import { expect, test } from "vitest";
import { findScenario, parseEventTypes, scenarios } from "../../../cli/trigger/scenarios.ts";
import { eventTypes } from "../../../payments/webhooks/event-types.ts";

test("pay trigger knows every type of event, and says why test mode cannot produce some", () => {
  expect(Object.keys(scenarios).sort()).toEqual(Object.keys(eventTypes).sort());
  expect(() => findScenario("payment.settled")).toThrow(
    expect.objectContaining({ exitCode: 2, message: expect.stringContaining("no money moves in test mode") }),
  );
});

test("an unknown type of event is a wrong call", () => {
  expect(parseEventTypes("payment.created, refund.held")).toEqual(["payment.created", "refund.held"]);
  expect(() => parseEventTypes("payment.paid")).toThrow(expect.objectContaining({ exitCode: 2 }));
});
