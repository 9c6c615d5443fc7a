import type { Command } from "commander";
import { createWalletClient, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { collectorAddress, collectorCode, encodeCollectorDeployment } from "../../chains/evm/collector.ts";
import { type EvmNetwork, listEvmNetworks, readKey, readNetworks } from "../networks.ts";
import { RefusedError, type Runs, type Tool, UsageError } from "./tool.ts";

/** The Collector, through which assets of kind permit2 are paid: one for each treasury and chain. */
export function addCollectorCommands(program: Command, runs: Runs): void {
  const collector = program
    .command("collector")
    .description("the contract through which Permit2 payments are collected");
  runs(
    collector.command("show <chain>").description("where a chain's Collector stands, and whether it is there"),
    async (tool, [chain = ""]) => {
      const { address, code, expected } = await look(tool, chain);
      const state = code === undefined ? "not deployed" : code === expected ? "deployed" : "other code is there";
      return { value: { chain, address, state } };
    },
  );
  runs(
    collector
      .command("deploy <chain>")
      .description("put it in place, through the CREATE2 deployer; harmless when it is there")
      .option(
        "--key <variable>",
        "the environment variable that holds the paying account's private key",
        "DEPLOYER_KEY",
      )
      .addHelpText(
        "after",
        "\nAny account with gas will do, and it gets no rights. Not a lane's: its nonces are the workers' own.\n" +
          "Example:\n  NETWORKS_FILE=networks.json DEPLOYER_KEY=0x… npm run admin -- collector deploy eip155:8453",
      ),
    async (tool, [chain = ""], { key = "DEPLOYER_KEY" }) => {
      const { network, client, parts, address, code, expected } = await look(tool, chain);
      if (code === expected) return { value: { chain, address, state: "deployed before" } };
      if (code !== undefined) throw new RefusedError(`other code stands at ${address} of ${chain}`);
      const account = privateKeyToAccount(readKey({ env: key }, tool.env));
      const own = [network.treasury, ...network.lanes].map((one) => one.address.toLowerCase());
      if (own.includes(account.address.toLowerCase()))
        throw new UsageError(`--key: ${account.address} is the treasury's or a lane's; take another account`);
      const hash = await client.sendTransaction({ account, chain: null, ...encodeCollectorDeployment(parts) });
      await client.waitForTransactionReceipt({ hash });
      const deployed = await client.getCode({ address });
      if (deployed !== expected) throw new RefusedError(`transaction ${hash} has left no Collector at ${address}`);
      await tool.record("collector deploy", address);
      return { value: { chain, address, state: "deployed", transaction: hash } };
    },
  );
}

async function look(tool: Tool, chain: string) {
  const network = listEvmNetworks(readNetworks(tool.networksFile())).find((one) => one.chain === chain);
  if (!network) throw new UsageError(`the networks file has no chain ${chain}`);
  const client = createWalletClient({ transport: http(urlOf(network)) }).extend(publicActions);
  const treasury = network.treasury.address.toLowerCase() as `0x${string}`;
  const parts = { permit2: network.permit2.toLowerCase() as `0x${string}`, treasury };
  const address = collectorAddress(parts);
  const code = await client.getCode({ address });
  return { network, client, parts, address, code, expected: collectorCode(parts) };
}

function urlOf(network: EvmNetwork): string {
  const [first] = network.rpc;
  if (!first) throw new UsageError(`${network.chain} has no RPC endpoint`);
  return first.url;
}
