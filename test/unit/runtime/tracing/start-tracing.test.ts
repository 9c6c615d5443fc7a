import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

/**
 * Loads the server of the signer's requests and starts tracing as the signer does, first without an endpoint and then with one.
 * Prints the packages of OpenTelemetry that were loaded each time.
 */
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
  const deps = { role: "signer", log: { info() {} }, metrics: {}, shutdown: { onClose() {} } };
  await startTracing(readSignerConfig(files), deps);
  const without = [...loaded];
  await startTracing(readSignerConfig({ ...files, OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" }), deps);
  console.log(JSON.stringify({ without, with: [...loaded] }));
`;

test("the signer loads OpenTelemetry's SDK only if an endpoint is set", async () => {
  const args = ["--input-type=module", "--no-warnings", "-e", script];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 80_000 });
  expect(JSON.parse(stdout)).toEqual({
    without: ["@opentelemetry/api"],
    with: expect.arrayContaining(["@opentelemetry/sdk-trace"]),
  });
});
