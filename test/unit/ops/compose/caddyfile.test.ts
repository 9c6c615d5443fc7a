import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { statusOf } from "../../../../api/http/http-errors.ts";
import { operations } from "../../../../api/routes.ts";

const read = (path: string) => readFileSync(new URL(`../../../../${path}`, import.meta.url), "utf8");
const caddyfile = read("ops/compose/Caddyfile");

/** The conditions of each `lb_retry_match`: a request that meets all conditions of one of them may be sent twice. */
const repeated = [...caddyfile.matchAll(/lb_retry_match \{\n([^}]+)\}/g)].map(([, block = ""]) =>
  Object.fromEntries(
    block
      .trim()
      .split("\n")
      .map((line) => line.trim().split(" "))
      .map(([name = "", ...values]) => [name, values.toSorted()]),
  ),
);

test("the proxy repeats a POST of merchants only where the api stores the response for its Idempotency-Key", () => {
  const idempotent = operations.filter(({ idempotency }) => idempotency !== undefined);
  expect(new Set(idempotent.map(({ method }) => method))).toEqual(new Set(["POST"]));
  expect(repeated).toEqual([
    { method: ["GET", "HEAD", "OPTIONS"] },
    {
      method: ["POST"],
      header: ["*", "Idempotency-Key"],
      path: idempotent.map(({ path }) => path.replaceAll(/:\w+/g, "*")).toSorted(),
    },
    { path: ["/checkout/*", "/v1/gateway/*"] },
  ]);
  // Calls of the gateway change nothing, or answer a repetition with the present state.
  const ofGateway = operations.filter(({ path }) => path.startsWith("/v1/gateway/"));
  expect(ofGateway.filter(({ access }) => access !== "gateway")).toEqual([]);
});

test("the proxy accepts the bodies that the api accepts, and refuses others with the same status, code and message", () => {
  const limit = /BODY_LIMIT = (\d+) \* 1024/.exec(read("api/server.ts"))?.[1];
  expect(caddyfile).toContain(`max_size ${limit}KiB`);
  expect(caddyfile).toContain(`int({header.Content-Length}) > ${Number(limit) * 1024}`);
  const message = /413: "(.+)"/.exec(read("api/http/error-handler.ts"))?.[1];
  const bodies = [...caddyfile.matchAll(/respond `(.+)`/g)].map(([, text = ""]) => JSON.parse(text) as unknown);
  expect(bodies).toContainEqual({ code: "invalid_params", message });
  for (const body of bodies)
    expect(body).toEqual({ code: expect.toBeOneOf(Object.keys(statusOf)), message: expect.any(String) });
});
