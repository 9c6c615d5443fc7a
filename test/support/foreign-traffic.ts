import type { Hex } from "viem";
import * as usdc from "../../local/usdc.ts";
import type { TestChain } from "./evm-chain.ts";
import { deployTestContract, testContract } from "./test-contracts.ts";

/** Gas of one transfer of USDC to an account that has some, inside a loop, and of the transaction around it. */
const TRANSFER_GAS = 16_000n;
const TRANSACTION_GAS = 250_000n;

/**
 * Returns a function that makes transfers of the chain's USDC between strangers, all in one transaction.
 * @param holds how many transfers it can make altogether
 */
export async function makeForeignTraffic(
  { client, contracts }: Pick<TestChain, "client" | "contracts">,
  holds = 10_000_000n,
): Promise<(count: number) => Promise<Hex>> {
  const address = await deployTestContract(client, "Traffic", "Traffic");
  await usdc.mintUsdc(client, contracts.token, [address], holds);
  const { abi } = testContract("Traffic", "Traffic");
  return async (count) => {
    const gas = TRANSACTION_GAS + TRANSFER_GAS * BigInt(count);
    return client.writeContract({ address, abi, functionName: "move", args: [contracts.token, BigInt(count)], gas });
  };
}
