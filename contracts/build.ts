import { readFileSync, writeFileSync } from "node:fs";
import { compile } from "./compile.ts";

/** Writes contracts/Collector.json; with `--check` only says whether it is what the source compiles to. */
const artifact = new URL("./Collector.json", import.meta.url);
const { Collector } = compile(new URL("./Collector.sol", import.meta.url));
const text = `${JSON.stringify(Collector, null, 2)}\n`;
if (!process.argv.includes("--check")) writeFileSync(artifact, text);
else if (readFileSync(artifact, "utf8") !== text) {
  console.error("contracts/Collector.json is not what contracts/Collector.sol compiles to: npm run contracts");
  process.exitCode = 1;
} else console.log("contracts: in step");
