import { readFileSync, writeFileSync } from "node:fs";
import { compile } from "./compile.ts";

/** Compiles the contracts and writes the artifacts beside the sources. With `--check`, only compares them. */
const isCheck = process.argv.includes("--check");
for (const name of ["Collector", "Disburser", "Inspector"]) {
  const artifact = new URL(`./${name}.json`, import.meta.url);
  const text = `${JSON.stringify(compile(new URL(`./${name}.sol`, import.meta.url))[name], null, 2)}\n`;
  if (!isCheck) writeFileSync(artifact, text);
  else if (readFileSync(artifact, "utf8") !== text) {
    console.error(`contracts/${name}.json is out of date with contracts/${name}.sol: npm run contracts`);
    process.exitCode = 1;
  }
}
if (isCheck && !process.exitCode) console.log("contracts: up to date");
