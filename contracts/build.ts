import { readFileSync, writeFileSync } from "node:fs";
import { readArguments } from "../runtime/command-arguments.ts";
import { compile } from "./compile.ts";

const help = `usage: npm run contracts -- [options]

Compiles the contracts and writes the artifacts beside the sources. Exits with 1 when --check finds an artifact out of date.

  --check  only compare the artifacts with the sources
  --help   print this text`;

const { check: isCheck } = readArguments(help, { check: { type: "boolean", default: false } }).values;
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
