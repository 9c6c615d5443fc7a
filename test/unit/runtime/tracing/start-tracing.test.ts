import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

/** Starts tracing as the signer does, loads the server of its requests, and prints which packages of OpenTelemetry were loaded. */
const script = `
  import { registerHooks } from "node:module";
  const loaded = new Set();
  registerHooks({
    load(url, context, next) {
      const [, name] = /node_modules\\/(@opentelemetry\\/[^/]+)/.exec(url) ?? [];
      if (name) loaded.add(name);
      return next(url, context);
    },
  });
  const { startTracing } = await import("./runtime/tracing/start-tracing.ts");
  await import("./signer/server.ts");
  const { readSignerConfig } = await import("./runtime/config.ts");
  const files = { NETWORKS_FILE: "n", SIGNER_LISTEN: "unix:/s", SIGNER_STORE: "s", SIGNER_LIMITS_FILE: "l" };
  const config = readSignerConfig({ ...files, OTEL_EXPORTER_OTLP_ENDPOINT: process.argv[1] });
  await startTracing(config, { role: "signer", log: { info() {} }, metrics: {}, shutdown: { onClose() {} } });
  console.log(JSON.stringify([...loaded]));
`;

const listLoaded = async (endpoint: string): Promise<string[]> => {
  const args = ["--input-type=module", "--no-warnings", "-e", script, endpoint];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 20_000 });
  return JSON.parse(stdout) as string[];
};

test("the signer loads OpenTelemetry's SDK only if an endpoint is set", async () => {
  expect(await listLoaded("")).toEqual(["@opentelemetry/api"]);
  expect(await listLoaded("http://127.0.0.1:1")).toContain("@opentelemetry/sdk-trace");
});
