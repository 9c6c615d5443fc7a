import type { Command } from "commander";
import { encodeFunctionData, type Hex, maxUint256 } from "viem";
import { parseAssetId } from "../../chains/caip.ts";
import { tokenAbi } from "../../chains/evm/abi.ts";
import { disburserAddress, disburserCode, encodeDisburserDeployment } from "../../chains/evm/disburser-contract.ts";
import { openTreasury } from "../../chains/evm/signers/open-evm-keys.ts";
import { type EvmNetwork, readKey, readSecret, readText } from "../../runtime/networks/read-networks.ts";
import { type AddAction, type Context, RefusedError, UsageError } from "./command.ts";
import { addDeployment, lowercaseAddress, openNetwork } from "./deploy-contract.ts";

/** Adds the commands for the Disburser, the contract that pays out assets without EIP-3009: one per treasury and chain. */
export function addDisburserCommands(program: Command, addAction: AddAction): void {
  const disburser = program
    .command("disburser")
    .description("the contract that pays out and refunds assets without EIP-3009");
  addDeployment(disburser, addAction, "Disburser", describeDisburser);
  addAction(
    disburser
      .command("approve <chain>")
      .description("approve it to move the treasury's tokens; needed once for each asset")
      .option("--asset <caip19>", "only this asset (default: every asset that needs it)")
      .addHelpText(
        "after",
        "\nThe treasury signs and sends the transaction, with its key from the networks file. It needs about 50,000 gas for\n" +
          "each asset. Does nothing for an asset that is approved. Deploy the contract first.",
      ),
    async (context, [chain = ""], { asset }) => {
      // Refuses an unknown operator before anything happens outside of Postgres.
      await context.actor();
      const { network, client } = openNetwork(context, chain);
      const { address, code } = describeDisburser(network);
      if ((await client.getCode({ address })) !== code)
        throw new RefusedError(`the Disburser of ${chain} is not deployed: npm run admin -- disburser deploy ${chain}`);
      const assets = network.assets.filter((one) => one.kind !== "eip3009" && (!asset || one.asset === asset));
      if (asset && assets.length === 0)
        throw new UsageError(`${asset} is not an asset of ${chain} that needs a Disburser`);
      const value = [];
      for (const one of assets) {
        const transactions = await approve(context, network, one.asset, address);
        if (transactions.length > 0) await context.record("disburser.approved", one.asset);
        const state = transactions.length > 0 ? "approved" : "already approved";
        value.push({ asset: one.asset, spender: address, state, transaction: transactions.at(-1) ?? null });
      }
      return { value };
    },
  );
}

function describeDisburser({ treasury }: EvmNetwork) {
  const owner = lowercaseAddress(treasury.address);
  return {
    address: disburserAddress(owner),
    code: disburserCode(owner),
    deployment: encodeDisburserDeployment(owner),
  };
}

/** Returns the transactions it sent: none, one, or two when an existing allowance is too small. */
async function approve(context: Context, network: EvmNetwork, asset: string, spender: Hex): Promise<Hex[]> {
  const { client } = openNetwork(context, network.chain);
  const token = lowercaseAddress(`0x${parseAssetId(asset)?.token.slice(2)}`);
  const { env } = context;
  const account = await openTreasury(network, {
    readKey: (source) => readKey(source, env),
    readSecret: (source) => readSecret(source, env),
    readText,
  });
  const args = [account.address, spender] as const;
  const allowed = await client.readContract({ address: token, abi: tokenAbi, functionName: "allowance", args });
  if (allowed > maxUint256 / 2n) return [];
  const hashes: Hex[] = [];
  // Some tokens (USDT) change an allowance only from zero.
  for (const amount of allowed > 0n ? [0n, maxUint256] : [maxUint256]) {
    const data = encodeFunctionData({ abi: tokenAbi, functionName: "approve", args: [spender, amount] });
    const hash = await client.sendTransaction({ account, chain: null, to: token, data });
    const { status } = await client.waitForTransactionReceipt({ hash });
    if (status !== "success") throw new RefusedError(`transaction ${hash}, which approves ${asset}, reverted`);
    hashes.push(hash);
  }
  return hashes;
}
