import { spawnSync } from "node:child_process";
import { z } from "zod";
import { acceptedAdvisories } from "./dependency-rules.ts";

/**
 * Asks the registry for advisories about the packages that run in production (`npm audit`), and fails for each that
 * dependency-rules.ts does not accept, and for each that it accepts and the registry no longer reports. Needs a registry
 * with the audit endpoint, so it is not part of `npm run check`.
 */
const Advisory = z.object({ title: z.string(), url: z.string(), name: z.string() });
const Report = z.object({ vulnerabilities: z.record(z.string(), z.object({ via: z.array(z.unknown()) })) });

const run = spawnSync("npm", ["audit", "--omit=dev", "--json"], { encoding: "utf8" });
const report = Report.safeParse(run.stdout === "" ? undefined : JSON.parse(run.stdout));
if (!report.success) {
  console.error(`npm audit gave no report; the registry may have no audit endpoint:\n${run.stderr}`);
  process.exit(1);
}
const found = Object.values(report.data.vulnerabilities).flatMap(({ via }) =>
  via.flatMap((one) => {
    const advisory = Advisory.safeParse(one);
    return advisory.success ? [{ ...advisory.data, id: advisory.data.url.replace(/^.*\//, "") }] : [];
  }),
);
const unknown = found.filter(({ id }) => !Object.hasOwn(acceptedAdvisories, id));
const gone = Object.keys(acceptedAdvisories).filter((id) => !found.some((one) => one.id === id));
for (const { id, name, title } of unknown) console.error(`${id} ${name}: ${title}`);
for (const id of gone) console.error(`${id} is accepted in dependency-rules.ts and no longer reported`);
if (unknown.length + gone.length > 0) process.exitCode = 1;
else console.log(`audit: no advisory beyond the ${found.length} accepted ones`);
