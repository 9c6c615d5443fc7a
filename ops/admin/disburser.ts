import type { Command } from "commander";
import { encodeFunctionData, type Hex, maxUint256 } from "viem";
import { parseAssetId } from "../../chains/caip.ts";
import { tokenAbi } from "../../chains/evm/abi.ts";
import { disburserAddress, disburserCode, encodeDisburserDeployment } from "../../chains/evm/disburser.ts";
import { openTreasury } from "../../chains/evm/signers/open.ts";
import { type EvmNetwork, readKey, readSecret, readText } from "../networks.ts";
import { addDeployment, openNetwork } from "./deployments.ts";
import { RefusedError, type Runs, type Tool, UsageError } from "./tool.ts";

/** The Disburser, through which assets without EIP-3009 are paid out: one for each treasury and chain. */
export function addDisburserCommands(program: Command, runs: Runs): void {
  const disburser = program
    .command("disburser")
    .description("the contract through which assets without EIP-3009 are paid out and refunded");
  addDeployment(disburser, runs, "Disburser", describeDisburser);
  runs(
    disburser
      .command("approve <chain>")
      .description("let it move the treasury's tokens, as the treasury signs each payout; once for each asset")
      .option("--asset <caip19>", "this asset alone; all that need it when left out")
      .addHelpText(
        "after",
        "\nSigned by the treasury's key as the networks file names it, and sent by the treasury, which needs gas for it:\n" +
          "about 50,000 for an asset. Harmless when it is approved. The contract has to be deployed first.",
      ),
    async (tool, [chain = ""], { asset }) => {
      const { network, client } = openNetwork(tool, chain);
      const { address, code } = describeDisburser(network);
      if ((await client.getCode({ address })) !== code)
        throw new RefusedError(`the Disburser of ${chain} is not deployed: npm run admin -- disburser deploy ${chain}`);
      const assets = network.assets.filter((one) => one.kind !== "eip3009" && (!asset || one.asset === asset));
      if (asset && assets.length === 0) throw new UsageError(`${asset} is no asset of ${chain} that needs a Disburser`);
      const value = [];
      for (const one of assets) {
        const transactions = await approve(tool, network, one.asset, address);
        if (transactions.length > 0) await tool.record("disburser approve", one.asset);
        const state = transactions.length > 0 ? "approved" : "approved before";
        value.push({ asset: one.asset, spender: address, state, transaction: transactions.at(-1) ?? null });
      }
      return { value };
    },
  );
}

function describeDisburser({ treasury }: EvmNetwork) {
  const owner = treasury.address.toLowerCase() as Hex;
  return {
    address: disburserAddress(owner),
    code: disburserCode(owner),
    deployment: encodeDisburserDeployment(owner),
  };
}

/** Gives the transactions that it took: none, one, or two where an allowance was there that is not enough. */
async function approve(tool: Tool, network: EvmNetwork, asset: string, spender: Hex): Promise<Hex[]> {
  const { client } = openNetwork(tool, network.chain);
  const token = parseAssetId(asset)?.token as Hex;
  const { env } = tool;
  const account = await openTreasury(network, {
    readKey: (source) => readKey(source, env),
    readSecret: (source) => readSecret(source, env),
    readText,
  });
  const args = [account.address, spender] as const;
  const allowed = await client.readContract({ address: token, abi: tokenAbi, functionName: "allowance", args });
  if (allowed > maxUint256 / 2n) return [];
  const hashes: Hex[] = [];
  // Some tokens change an allowance through zero only (USDT).
  for (const amount of allowed > 0n ? [0n, maxUint256] : [maxUint256]) {
    const data = encodeFunctionData({ abi: tokenAbi, functionName: "approve", args: [spender, amount] });
    const hash = await client.sendTransaction({ account, chain: null, to: token, data });
    const { status } = await client.waitForTransactionReceipt({ hash });
    if (status !== "success") throw new RefusedError(`transaction ${hash}, which approves ${asset}, was reverted`);
    hashes.push(hash);
  }
  return hashes;
}
