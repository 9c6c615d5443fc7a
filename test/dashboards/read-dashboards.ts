import { readdirSync, readFileSync } from "node:fs";
import { z } from "zod";

const Panel = z.object({
  id: z.number(),
  type: z.enum(["row", "stat", "timeseries", "heatmap", "table"]),
  title: z.string(),
  gridPos: z.object({ x: z.number(), y: z.number(), w: z.number(), h: z.number() }),
  targets: z.array(z.object({ expr: z.string(), legendFormat: z.string() })).default([]),
  fieldConfig: z
    .object({ defaults: z.object({ unit: z.string().default("short"), min: z.number().optional() }) })
    .optional(),
});
const Dashboard = z.object({ uid: z.string(), title: z.string(), description: z.string(), panels: z.array(Panel) });

export type Panel = z.infer<typeof Panel>;
export type Dashboard = z.infer<typeof Dashboard> & { name: string };

const folder = new URL("../../ops/grafana/dashboards/", import.meta.url);

/** Returns the shipped dashboards in the order of their numbers. `name` is the file's, without its ending. */
export function readDashboards(): Dashboard[] {
  return readdirSync(folder)
    .map((file) => ({
      ...Dashboard.parse(JSON.parse(readFileSync(new URL(file, folder), "utf8"))),
      name: file.replace(/\.json$/, ""),
    }))
    .sort((one, other) => one.title.localeCompare(other.title));
}

/** The values that Grafana has for the variables of a new dashboard. Rates are taken over some scrapes of one second. */
const variables: Readonly<Record<string, string>> = {
  mode: "live",
  chain: ".*",
  queue: ".*",
  job: ".*",
  __rate_interval: "30s",
};

/** Returns a panel's expression with its variables replaced. Throws when it names another variable. */
export const fillVariables = (expr: string): string =>
  expr.replaceAll(/\$(\w+)/g, (_, name: string) => {
    const value = variables[name];
    if (value === undefined) throw new Error(`the variable ${name} has no value`);
    return value;
  });
