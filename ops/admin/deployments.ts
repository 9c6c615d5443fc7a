import type { Command } from "commander";
import { createWalletClient, type Hex, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { type EvmNetwork, listEvmNetworks, readKey, readNetworks } from "../networks.ts";
import { RefusedError, type Runs, type Tool, UsageError } from "./tool.ts";

/** A contract of ours for one treasury: where it stands, the code that it has there, and what deploys it. */
export type OurContract = { address: Hex; code: Hex; deployment: { to: Hex; data: Hex } };

/** Adds `show` and `deploy` to the commands of a contract of ours. @param name as it is called in answers and records */
export function addDeployment(
  group: Command,
  runs: Runs,
  name: string,
  describeOn: (network: EvmNetwork) => OurContract,
): void {
  runs(
    group.command("show <chain>").description(`where a chain's ${name} stands, and whether it is there`),
    async (tool, [chain = ""]) => {
      const { network, client } = openNetwork(tool, chain);
      const { address, code: expected } = describeOn(network);
      const code = await client.getCode({ address });
      const state = code === undefined ? "not deployed" : code === expected ? "deployed" : "other code is there";
      return { value: { chain, address, state } };
    },
  );
  runs(
    group
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
          `Example:\n  NETWORKS_FILE=networks.json DEPLOYER_KEY=0x… npm run admin -- ${group.name()} deploy eip155:8453`,
      ),
    async (tool, [chain = ""], { key = "DEPLOYER_KEY" }) => {
      const { network, client } = openNetwork(tool, chain);
      const { address, code: expected, deployment } = describeOn(network);
      const code = await client.getCode({ address });
      if (code === expected) return { value: { chain, address, state: "deployed before" } };
      if (code !== undefined) throw new RefusedError(`other code stands at ${address} of ${chain}`);
      const account = privateKeyToAccount(readKey({ env: key }, tool.env));
      const own = [network.treasury, ...network.lanes].map((one) => one.address.toLowerCase());
      if (own.includes(account.address.toLowerCase()))
        throw new UsageError(`--key: ${account.address} is the treasury's or a lane's; take another account`);
      const hash = await client.sendTransaction({ account, chain: null, ...deployment });
      await client.waitForTransactionReceipt({ hash });
      if ((await client.getCode({ address })) !== expected)
        throw new RefusedError(`transaction ${hash} has left no ${name} at ${address}`);
      await tool.record(`${group.name()} deploy`, address);
      return { value: { chain, address, state: "deployed", transaction: hash } };
    },
  );
}

/** A chain of the networks file, and a client of its first endpoint. Throws UsageError. */
export function openNetwork(tool: Tool, chain: string) {
  const network = listEvmNetworks(readNetworks(tool.networksFile())).find((one) => one.chain === chain);
  if (!network) throw new UsageError(`the networks file has no chain ${chain}`);
  const [first] = network.rpc;
  if (!first) throw new UsageError(`${network.chain} has no RPC endpoint`);
  const client = createWalletClient({ transport: http(first.url) }).extend(publicActions);
  return { network, client };
}
