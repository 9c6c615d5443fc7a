import type { Command } from "commander";
import { collectorAddress, collectorCode, encodeCollectorDeployment } from "../../chains/evm/collector.ts";
import { addDeployment } from "./deployments.ts";
import type { Runs } from "./tool.ts";

/** The Collector, through which assets of kind permit2 are paid: one for each treasury and chain. */
export function addCollectorCommands(program: Command, runs: Runs): void {
  const collector = program
    .command("collector")
    .description("the contract through which Permit2 payments are collected");
  addDeployment(collector, runs, "Collector", ({ permit2, treasury }) => {
    const lower = (address: string) => address.toLowerCase() as `0x${string}`;
    const parts = { permit2: lower(permit2), treasury: lower(treasury.address) };
    const deployment = encodeCollectorDeployment(parts);
    return { address: collectorAddress(parts), code: collectorCode(parts), deployment };
  });
}
