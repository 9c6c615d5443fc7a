import type { Command } from "commander";
import { collectorAddress, collectorCode, encodeCollectorDeployment } from "../../chains/evm/collector-contract.ts";
import type { AddAction } from "./command.ts";
import { addDeployment, lowercaseAddress } from "./deploy-contract.ts";

/** Adds the commands for the Collector, the contract for payments in assets of kind permit2: one per treasury and chain. */
export function addCollectorCommands(program: Command, addAction: AddAction): void {
  const collector = program.command("collector").description("the contract that collects Permit2 payments");
  addDeployment(collector, addAction, "Collector", ({ permit2, treasury }) => {
    const parts = { permit2: lowercaseAddress(permit2), treasury: lowercaseAddress(treasury.address) };
    const deployment = encodeCollectorDeployment(parts);
    return { address: collectorAddress(parts), code: collectorCode(parts), deployment };
  });
}
