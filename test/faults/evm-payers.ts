import { type Address, encodeFunctionData, type Hex, type PrivateKeyAccount, parseAbi } from "viem";
import { usdcAbi } from "../../local/circle-artifacts.ts";
import { fundGas, usdcBalance } from "../../local/usdc.ts";
import { freshKey, fundEvmBuyers, walletAbi } from "./evm-buyers.ts";
import type { EvmEnvironment } from "./evm-environment.ts";
import { type ContractChanges, topFees } from "./gas-oracle-server.ts";
import type { Payers } from "./payer-types.ts";
import { type Plan, tokenOf } from "./payment-plan.ts";
import { rebroadcastPushes } from "./rebroadcast-pushes.ts";
import type { Random } from "./seeded-random.ts";
import { encodeRelay } from "./third-party-relays.ts";

const listAbi = parseAbi([
  "function blacklist(address)",
  "function unBlacklist(address)",
  "function isBlacklisted(address) view returns (bool)",
]);
const thirdPartyCount = 8;

/** Creates and funds the buyers, and the third parties that disturb them, before any fault. */
export async function fundEvmPayers(
  environment: EvmEnvironment,
  all: readonly Plan[],
  { random, contractChanges }: { random: Random; contractChanges: ContractChanges },
): Promise<Payers> {
  const { client, contracts, tokens } = environment;
  const { token } = contracts;
  const thirdParties = Array.from({ length: thirdPartyCount }, freshKey);
  await fundGas(
    client,
    thirdParties.map(({ address }) => address),
  );
  const payerOf = await fundEvmBuyers(
    environment,
    all.filter(({ family }) => family === "evm"),
    rebroadcastPushes(environment),
  );

  const isBlocked = (who: Address) =>
    client.readContract({ address: token, abi: listAbi, functionName: "isBlacklisted", args: [who] });
  /** Adds a payer to the token's block list, or removes it. */
  const block = (who: Address, on: boolean) => {
    const data = encodeFunctionData({ abi: listAbi, functionName: on ? "blacklist" : "unBlacklist", args: [who] });
    contractChanges.make(who, { to: token, data, holds: async () => (await isBlocked(who)) === on });
  };
  /** Mints the same amount again for a payer that has spent its money. */
  const refill = (who: Address, amount: bigint) => {
    const data = encodeFunctionData({ abi: usdcAbi, functionName: "mint", args: [who, amount] });
    contractChanges.make(who, {
      to: token,
      data,
      holds: async () => (await usdcBalance(client, token, who)) >= amount,
    });
  };
  /** Sends all money of the payer to another account. */
  const spend = async (buyer: PrivateKeyAccount) => {
    const amount = await usdcBalance(client, token, buyer.address);
    const to = thirdParties[0]?.address ?? buyer.address;
    const data = encodeFunctionData({ abi: usdcAbi, functionName: "transfer", args: [to, amount] });
    await client.sendTransaction({ account: buyer, to: token, data, ...topFees });
  };
  /** Submits a payer's authorization from a third party's account. */
  const relay = async (call: { to: Hex; data: Hex }) => {
    // Either after our transaction in the block, or before it.
    const maxPriorityFeePerGas = random.pick([100_000_000n, 5_000_000_000n]);
    const gas = 500_000n;
    await client.sendTransaction({
      account: random.pick(thirdParties),
      ...call,
      ...topFees,
      gas,
      maxPriorityFeePerGas,
    });
  };
  return {
    chain: environment.id,
    buyerOf: (plan) => payerOf(plan).buyer,
    async canNoLongerPay({ kind }, { results }) {
      // The token was paused when the buyer's own transaction was mined.
      if (!kind.endsWith("push")) return false;
      const hash = (results[0]?.data[0] ?? "0x") as Hex;
      const receipt = await client.getTransactionReceipt({ hash }).catch(() => undefined);
      return receipt?.status === "reverted";
    },
    async disturb(plan, signed) {
      const { key, contract } = payerOf(plan);
      const target = tokenOf(plan.kind) === "usdc" ? token : tokens.collector;
      if (plan.kind.endsWith("relayed")) await relay({ to: target, data: encodeRelay(signed) });
      if (plan.kind.startsWith("blocked")) block(key.address, true);
      if (plan.kind.startsWith("spent")) await spend(key);
      if (plan.kind === "hostile" && contract !== undefined) {
        const data = encodeFunctionData({ abi: walletAbi, functionName: "arm" });
        await client.sendTransaction({ account: key, to: contract, data, ...topFees });
      }
    },
    revertDisturbance(plan, { option }) {
      const { key } = payerOf(plan);
      if (plan.kind === "blocked") block(key.address, false);
      if (plan.kind === "spent") refill(key.address, BigInt(option.amount.value));
    },
  };
}
