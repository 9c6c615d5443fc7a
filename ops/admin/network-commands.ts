import type { Command } from "commander";
import { countEndpoints, readAgreementThreshold } from "../../chains/endpoint-agreement.ts";
import { type Networks, readNetworks } from "../../runtime/networks/read-networks.ts";
import type { AddAction } from "./command.ts";

const help = `
A single endpoint decides alone what a block contains and what is final: a payment that it omits or invents goes unnoticed.
With two or more, a second endpoint reads again what the first one has read, and movements of agreementThreshold or more (by default
10,000 whole units) are booked only when two endpoints return them. Use endpoints of two providers.`;

/** Adds the command that checks the networks file. */
export function addNetworkCommands(program: Command, addAction: AddAction): void {
  const networks = program.command("networks").description("the networks file");
  addAction(
    networks
      .command("check")
      .description("validate NETWORKS_FILE, and list the endpoints and agreement thresholds of each chain")
      .addHelpText("after", help),
    async (context) => {
      const chains = readNetworks(context.networksFile()).chains.map(describeChain);
      return {
        value: chains,
        lines: chains.flatMap(({ chain, endpoints, warning, agreementThreshold }) => [
          `${chain}  ${endpoints === 1 ? "1 endpoint" : `${endpoints} endpoints`}`,
          ...(warning === undefined ? [] : [`  ${warning}`]),
          ...Object.entries(agreementThreshold).map(
            ([asset, amount]) =>
              `  ${asset}: ${amount === null ? "no amount requires" : `amounts from ${amount} require`} two endpoints`,
          ),
        ]),
      };
    },
  );
}

function describeChain(network: Networks["chains"][number]) {
  const endpoints = countEndpoints(network);
  const chain: string = network.chain;
  const agreementThreshold: Record<string, string | null> = {};
  for (const asset of network.assets)
    agreementThreshold[asset.asset] = readAgreementThreshold(network, asset)?.toString() ?? null;
  return {
    chain,
    endpoints,
    ...(endpoints === 1 ? { warning: "its only endpoint is trusted without a check: add a second one" } : {}),
    agreementThreshold,
  };
}
