import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import openapiTS, { type OpenAPI3 } from "openapi-typescript";
import { afterAll, describe, expect, test } from "vitest";
import { describeApi } from "../../../../api/contract/openapi.ts";
import { refuseLiveKeys } from "../../../../api/contract/serve-docs.ts";
import { operations } from "../../../../api/routes.ts";
import { reservedCodes } from "../../../../payments/error-codes.ts";

const document = describeApi(operations, { publicUrl: "https://pay.example.test" });
const described = Object.values(document.paths).flatMap((methods) => Object.values(methods));
const find = (name: string) => described.find(({ operationId }) => operationId === name);
const parametersOf = (name: string) => Object.fromEntries((find(name)?.parameters ?? []).map((one) => [one.name, one]));

const folder = await mkdtemp(join(tmpdir(), "openapi-"));
afterAll(() => rm(folder, { recursive: true }));

describe("the OpenAPI document", () => {
  test("the document passes Redocly's recommended rules and describes every operation, parameter and tag", async () => {
    const rules = {
      "operation-description": "error",
      "parameter-description": "error",
      "tag-description": "error",
      "operation-tag-defined": "error",
      "no-invalid-media-type-examples": "error",
      "no-invalid-schema-examples": "error",
    } as const;
    const config = await createConfig({ extends: ["recommended"], rules });
    const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: "openapi.json", config });
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
  });

  test("the document names the version that it describes, and the versions that a call may name", () => {
    expect(document.info).toMatchObject({ version: "2026-02-19.preview" });
    const versions = ["2026-02-18", "2026-02-19.preview", "2026-02-19"];
    for (const { operationId } of described)
      expect(parametersOf(operationId)["Svc-Version"]?.schema).toEqual({ type: "string", enum: versions });
  });

  test("numbers, booleans and lists in queries have their types", () => {
    expect(parametersOf("getPaymentStatus")["maxPollMs"]?.schema).toMatchObject({ type: "integer", format: "int64" });
    expect(parametersOf("listPayments")["limit"]?.schema).toEqual({
      type: "integer",
      format: "int32",
      minimum: 1,
      maximum: 200,
      default: 50,
    });
    expect(parametersOf("gatewayGetPaymentOptions")["includePaymentInfo"]?.schema).toMatchObject({ type: "boolean" });
    expect(parametersOf("listPayments")["status"]?.schema).toMatchObject({ type: "array" });
    expect(parametersOf("listPayments")["network"]).toMatchObject({ explode: false, schema: { type: "array" } });
    for (const [name, schema] of Object.entries(document.components.schemas))
      expect([name, JSON.stringify(schema)]).not.toEqual([
        name,
        expect.stringMatching(/"integer"(?!,"format"|.*"format")/),
      ]);
  });

  test("every schema and every error response has an example, and every request body has a name", () => {
    for (const [name, schema] of Object.entries(document.components.schemas))
      expect([name, schema["examples"]]).toEqual([name, [expect.anything()]]);
    for (const { operationId, responses, requestBody } of described) {
      const body = requestBody?.content["application/json"].schema;
      if (body) expect([operationId, body]).toEqual([operationId, { $ref: expect.stringMatching(/Request$/) }]);
      for (const [status, response] of Object.entries(responses))
        if (status >= "400") expect(response.content["application/json"].examples).not.toEqual({});
    }
  });

  test("examples do not contradict themselves", () => {
    const exampleOf = (name: string) => [document.components.schemas[name]?.["examples"]].flat()[0];
    const paid = { succeededAt: expect.any(String), txId: expect.any(String) };
    expect(exampleOf("Refund")).toMatchObject({ status: "succeeded", ...paid });
    const settled = { settledAt: expect.any(String), settlement: { settled: true } };
    expect(exampleOf("ListedPayment")).toMatchObject({ status: "succeeded", isTerminal: true, ...settled });
    const enabled = { disabledReason: null, disabledAt: null, failingSince: null };
    expect(exampleOf("WebhookEndpoint")).toMatchObject({ status: "enabled", ...enabled });
    expect(exampleOf("StatementLine")).toMatchObject({ kind: "payment", refundId: null, to: null });
    expect(exampleOf("WebhookDelivery")).toMatchObject({ status: "delivered", nextAttemptAt: null, changeId: null });
    expect(exampleOf("SettlementChange")).toMatchObject({ status: "requested", appliedAt: null, decidedAt: null });
  });

  test("a partial refund's key and the twin of a path are described where they are called", () => {
    expect(find("createRefund")?.["summary"]).toContain("a part (amount), which requires an Idempotency-Key");
    expect(find("createMerchantPayment")?.["summary"]).toContain("as /v1/payments does");
    expect(find("getMerchantPaymentStatus")?.["summary"]).toContain("The same as /v1/payments/{id}/status");
  });

  test("an app id comes with its Client-Id, and a wallet may name a payment by a link", () => {
    const wallet = find("gatewayConfirmPayment");
    expect(wallet?.["security"]).toContainEqual({ appId: [], clientId: [] });
    expect(parametersOf("gatewayConfirmPayment")).not.toHaveProperty("Client-Id");
    const { schema, examples } = parametersOf("gatewayConfirmPayment")["id"] ?? {};
    expect(schema).not.toHaveProperty("pattern");
    expect(Object.keys(examples ?? {})).toEqual(["id", "link", "path", "pairing"]);
  });

  test("responses name their headers, and reserved error codes are marked", () => {
    expect(Object.keys(find("createRefund")?.responses["200"]?.headers ?? {})).toEqual(
      expect.arrayContaining(["Svc-Version", "X-Request-Id", "Idempotent-Replayed", "RateLimit-Remaining"]),
    );
    expect(find("createRefund")?.responses["429"]?.headers).toHaveProperty("Retry-After");
    expect(find("gatewayGetPaymentOptions")?.responses["403"]?.description).toBe(
      "forbidden (such as a key without the scope gateway), sanctioned_user",
    );
    expect(parametersOf("createPayment")["Idempotency-Key"]?.schema).toEqual({
      type: "string",
      pattern: "^[ -~]{1,255}$",
    });
    const { description } = document.components.schemas["ErrorCode"] ?? {};
    for (const code of reservedCodes) expect(description).toContain(code);
    const returned = described.flatMap(({ responses }) =>
      Object.values(responses).flatMap(({ content }) => Object.keys(content["application/json"].examples ?? {})),
    );
    expect(returned.filter((code) => reservedCodes.some((reserved) => reserved === code))).toEqual([]);
    expect(returned).toEqual(expect.arrayContaining(["api_key_not_found", "merchant_exists"]));
  });

  test("the generated TypeScript compiles, and every example has the type of its schema", {
    timeout: 180_000,
  }, async () => {
    const types = await openapiTS(structuredClone(document) as unknown as OpenAPI3);
    const examples = Object.entries(document.components.schemas).map(
      ([name, schema]) =>
        `export const ${name}: components["schemas"]["${name}"] = ${JSON.stringify((schema["examples"] as unknown[])[0])};`,
    );
    const queries = [
      `export const page: Query<"listPayments"> = { limit: 20, status: ["succeeded"], network: ["eip155:8453"] };`,
      `export const poll: Query<"getPaymentStatus"> = { maxPollMs: 20_000 };`,
      `export const asked: Query<"gatewayGetPaymentOptions"> = { includePaymentInfo: true };`,
      `// @ts-expect-error a number is not text\nexport const wrong: Query<"listPayments"> = { limit: "20" };`,
    ];
    const head = [
      'import type { components, operations } from "./types.ts";',
      'type Query<O extends keyof operations> = NonNullable<operations[O]["parameters"]["query" & keyof operations[O]["parameters"]]>;',
    ];
    await writeFile(join(folder, "types.ts"), types);
    await writeFile(join(folder, "examples.ts"), [...head, ...examples, ...queries].join("\n"));
    const tsc = new URL("../../../../node_modules/typescript/bin/tsc", import.meta.url).pathname;
    const flags = ["--noEmit", "--strict", "--allowImportingTsExtensions", "--skipLibCheck", "false"];
    const compiled = await promisify(execFile)(process.execPath, [tsc, ...flags, "examples.ts"], { cwd: folder }).catch(
      ({ stdout }: { stdout: string }) => ({ stdout }),
    );
    expect(compiled.stdout).toBe("");
  });
});

test("the documentation page sends requests with test keys, and refuses live ones", () => {
  const ask = (headers: Record<string, string>) => () => refuseLiveKeys({ headers });
  for (const headers of [{}, { "Api-Key": "svc_test_1" }, { Authorization: "Bearer svc_test_1" }])
    expect(ask(headers)()).toEqual({ headers });
  for (const headers of [{ "Api-Key": "svc_1" }, { Authorization: "Bearer svc_1" }])
    expect(ask(headers)).toThrow("test keys only");
});
