import { mkdir, rm, writeFile } from "node:fs/promises";
import { createProgress } from "../../local/progress.ts";
import { makeScratch } from "../../local/scratch-folder.ts";
import { readArguments } from "../../runtime/command-arguments.ts";
import { drawDashboard } from "./draw-dashboard.ts";
import { fillDashboards } from "./run-dashboards.ts";

const help = `usage: npm run dashboards

Pays for five and a half minutes on a stack of its own, with incidents, and draws what the dashboards show of it, into
docs/operations/dashboards. SECONDS_OF_LOAD changes the time.

  --help  print this text`;

readArguments(help, {});
const progress = createProgress();
const folder = new URL("../../docs/operations/dashboards/", import.meta.url);
const dir = await makeScratch("dashboards");
const seconds = Number(process.env["SECONDS_OF_LOAD"] ?? 330);
const filled = await fillDashboards({ dir, seconds, isComplete: () => true, say: progress.say });
await mkdir(folder, { recursive: true });
for (const dashboard of filled) await writeFile(new URL(`${dashboard.name}.svg`, folder), drawDashboard(dashboard));
await rm(dir, { recursive: true, force: true });
progress.print("the pictures are in docs/operations/dashboards");
process.exit(0);
