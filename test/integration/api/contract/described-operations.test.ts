import { expect, test } from "vitest";
import { operations } from "../../../../api/routes.ts";
import { contract, findOperation } from "../../../support/published-contract.ts";
import { makeMerchant, startApi } from "../start-api.ts";
import { makeValidCalls } from "./valid-calls.ts";

const api = await startApi();
const calls = await makeValidCalls(api, await makeMerchant(api));
const described = Object.entries(contract.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ name: operation.operationId, method, path, operation })),
);

test("every operation is described once, and has a valid call", () => {
  expect(described.map(({ name }) => name).toSorted()).toEqual(operations.map(({ name }) => name).toSorted());
  expect(new Set(described.map(({ name }) => name)).size).toBe(described.length);
  expect(Object.keys(calls).toSorted()).toEqual(described.map(({ name }) => name).toSorted());
});

test.each(described)(
  "$name succeeds, and its response matches its description",
  async ({ name, method, path, operation }) => {
    const call = await calls[name]?.();
    if (!call) throw new Error(`there is no valid call of ${name}`);
    expect(findOperation(call.method, call.path)).toMatchObject({ operationId: name, path });
    expect(call.method.toLowerCase()).toBe(method);
    const sent = call.body === undefined ? {} : { json: call.body };
    // startApi checks every response against the contract.
    const answer = await api.ask(call.method, call.path, { headers: call.headers, ...sent });
    expect(Object.keys(operation.responses).filter((status) => status < "300")).toEqual([String(answer.status)]);
  },
);

test("every route under /v1 is described", () => {
  const routes = api.app.printRoutes({ commonPrefix: false });
  for (const { path } of described)
    expect(routes).toContain(
      path
        .split("/")
        .at(-1)
        ?.replace(/\{(\w+)\}/, ":$1"),
    );
  const served = operations.map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`);
  expect(described.map(({ method, path }) => `${method.toUpperCase()} ${path}`).toSorted()).toEqual(served.toSorted());
});

test("every reference in the document resolves, and every path parameter is described", () => {
  const text = JSON.stringify(contract);
  for (const [, name] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g))
    expect(contract.components.schemas).toHaveProperty(name as string);
  expect(text).not.toContain("#/$defs/");
  for (const { path, operation } of described) {
    const named = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
    expect(operation.parameters.filter((one) => one.in === "path").map(({ name }) => name)).toEqual(named);
  }
});
