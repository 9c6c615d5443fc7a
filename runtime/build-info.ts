import project from "../package.json" with { type: "json" };
import type { Metrics } from "./metrics.ts";

/**
 * Sets `pay_build_info`. The image sets REVISION to the commit that it was built from.
 * @param schema the schema version of this release; undefined for a process that does not use the database
 */
export function setBuildInfo({ build }: Pick<Metrics, "build">, env: NodeJS.ProcessEnv, schema?: number): void {
  const revision = env["REVISION"] || "unknown";
  build.set({ version: project.version, revision, schema: schema === undefined ? "none" : String(schema) }, 1);
}
