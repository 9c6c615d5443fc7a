import type { Command } from "commander";
import { createWalletClient, type Hex, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { type EvmNetwork, listEvmNetworks, readKey, readNetworks } from "../../runtime/networks/read-networks.ts";
import { type AddAction, type Context, RefusedError, UsageError } from "./command.ts";

/** One of our contracts for a treasury: its address, its code, and the call that deploys it. */
export type OurContract = { address: Hex; code: Hex; deployment: { to: Hex; data: Hex } };

/** Adds `show` and `deploy` to the commands of one of our contracts. @param name its name in outputs and the audit log */
export function addDeployment(
  group: Command,
  addAction: AddAction,
  name: string,
  describeOn: (network: EvmNetwork) => OurContract,
): void {
  addAction(
    group.command("show <chain>").description(`show the address of a chain's ${name}, and whether it is deployed`),
    async (context, [chain = ""]) => {
      const { network, client } = openNetwork(context, chain);
      const { address, code: expected } = describeOn(network);
      const code = await client.getCode({ address });
      const state = code === undefined ? "not deployed" : code === expected ? "deployed" : "other code is deployed";
      return { value: { chain, address, state } };
    },
  );
  addAction(
    group
      .command("deploy <chain>")
      .description("deploy it through the CREATE2 deployer; does nothing when it is deployed")
      .option(
        "--key <variable>",
        "the environment variable with the private key of the account that pays the gas",
        "DEPLOYER_KEY",
      )
      .addHelpText(
        "after",
        "\nAny account with gas can deploy it; the account gets no rights. It must not be a lane, whose nonces only workers use.\n" +
          `Example:\n  NETWORKS_FILE=networks.json DEPLOYER_KEY=0x… npm run admin -- ${group.name()} deploy eip155:8453`,
      ),
    async (context, [chain = ""], { key = "DEPLOYER_KEY" }) => {
      // Refuses an unknown operator before anything happens outside of Postgres.
      await context.actor();
      const { network, client } = openNetwork(context, chain);
      const { address, code: expected, deployment } = describeOn(network);
      const code = await client.getCode({ address });
      if (code === expected) return { value: { chain, address, state: "already deployed" } };
      if (code !== undefined) throw new RefusedError(`other code is deployed at ${address} of ${chain}`);
      const account = privateKeyToAccount(readKey({ env: key }, context.env));
      const configured = [network.treasury, ...network.lanes].map((one) => one.address.toLowerCase());
      if (configured.includes(account.address.toLowerCase()))
        throw new UsageError(`--key: ${account.address} is the treasury or a lane; use another account`);
      const hash = await client.sendTransaction({ account, chain: null, ...deployment });
      await client.waitForTransactionReceipt({ hash });
      if ((await client.getCode({ address })) !== expected)
        throw new RefusedError(`transaction ${hash} did not deploy the ${name} at ${address}`);
      await context.record(`${group.name()}.deployed`, address);
      return { value: { chain, address, state: "deployed", transaction: hash } };
    },
  );
}

/** Returns an address in lower case, which the contracts of this service are derived from. */
export const lowercaseAddress = (address: Hex): Hex => `0x${address.slice(2).toLowerCase()}`;

/** Returns a chain of the networks file and a client of its first endpoint. Throws UsageError. */
export function openNetwork(context: Context, chain: string) {
  const network = listEvmNetworks(readNetworks(context.networksFile())).find((one) => one.chain === chain);
  if (!network) throw new UsageError(`the networks file has no chain ${chain}`);
  const [first] = network.rpc;
  if (!first) throw new UsageError(`${network.chain} has no RPC endpoint`);
  const client = createWalletClient({ transport: http(first.url) }).extend(publicActions);
  return { network, client };
}
