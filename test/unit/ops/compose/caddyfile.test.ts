import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { operations } from "../../../../api/routes.ts";

const caddyfile = readFileSync(new URL("../../../../ops/compose/Caddyfile", import.meta.url), "utf8");

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
  const ofGateway = operations.filter(({ path }) => path.startsWith("/v1/gateway/"));
  expect(ofGateway.filter(({ access }) => access !== "gateway")).toEqual([]);
});
