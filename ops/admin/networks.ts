import type { Command } from "commander";
import { countEndpoints, readAgreeFrom } from "../../chains/endpoints.ts";
import { type Networks, readNetworks } from "../networks.ts";
import type { AddAction } from "./tool.ts";

const help = `
A single endpoint decides alone what a block contains and what is final: a payment that it omits or invents goes unnoticed.
With two or more, a second endpoint reads again what the first one has read, and movements of agreeFrom or more (by default
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
        lines: chains.flatMap(({ chain, endpoints, warning, agreeFrom }) => [
          `${chain}  ${endpoints === 1 ? "1 endpoint" : `${endpoints} endpoints`}`,
          ...(warning === undefined ? [] : [`  ${warning}`]),
          ...Object.entries(agreeFrom).map(
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
  const agreeFrom: Record<string, string | null> = {};
  for (const asset of network.assets) agreeFrom[asset.asset] = readAgreeFrom(network, asset)?.toString() ?? null;
  return {
    chain,
    endpoints,
    ...(endpoints === 1 ? { warning: "its only endpoint is trusted without a check: add a second one" } : {}),
    agreeFrom,
  };
}
