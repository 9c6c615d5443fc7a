import type { Command } from "commander";
import { countEndpoints, readAgreeFrom } from "../../chains/endpoints.ts";
import { type Networks, readNetworks } from "../networks.ts";
import type { Runs } from "./tool.ts";

const help = `
With one endpoint, its word alone decides what is in a block and what is final: nobody notices when it leaves out a payment
or makes one up. With two or more, what one has read another one reads again, and movements of agreeFrom and more (10,000
whole units unless the asset says otherwise) are booked only when two endpoints show them. Take endpoints of two providers.`;

/** What a networks file says, and what an operator should know of it. */
export function addNetworkCommands(program: Command, runs: Runs): void {
  const networks = program.command("networks").description("what the networks file says");
  runs(
    networks
      .command("check")
      .description("read NETWORKS_FILE, and say of each chain how many endpoints it has and what that means")
      .addHelpText("after", help),
    async (tool) => {
      const chains = readNetworks(tool.networksFile()).chains.map(describeChain);
      return {
        value: chains,
        lines: chains.flatMap(({ chain, endpoints, warning, agreeFrom }) => [
          `${chain}  ${endpoints === 1 ? "1 endpoint" : `${endpoints} endpoints`}`,
          ...(warning === undefined ? [] : [`  ${warning}`]),
          ...Object.entries(agreeFrom).map(
            ([asset, amount]) => `  ${asset}: ${amount === null ? "no amount" : `from ${amount}`} needs two endpoints`,
          ),
        ]),
      };
    },
  );
}

function describeChain(network: Networks["chains"][number]) {
  const endpoints = countEndpoints(network);
  const agreeFrom = network.assets.map((asset) => [asset.asset, readAgreeFrom(network, asset)?.toString() ?? null]);
  return {
    chain: network.chain as string,
    endpoints,
    ...(endpoints === 1 ? { warning: "its only endpoint is believed, whatever it says: name a second one" } : {}),
    agreeFrom: Object.fromEntries(agreeFrom) as Record<string, string | null>,
  };
}
