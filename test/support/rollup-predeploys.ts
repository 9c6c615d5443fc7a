import { ARB_SYS } from "../../chains/evm/current-block.ts";
import { GAS_PRICE_ORACLE, NODE_INTERFACE } from "../../chains/evm/rollup-fees.ts";
import type { TestChain } from "./evm-chain.ts";
import { deployTestContract, testContract } from "./test-contracts.ts";

const predeploys = { GasPriceOracle: GAS_PRICE_ORACLE, NodeInterface: NODE_INTERFACE, ArbSys: ARB_SYS };

/** Puts a rollup's contract at its address, as a rollup has it from its first block. Returns a function that sets its fees. */
export async function plantPredeploy(chain: TestChain, name: keyof typeof predeploys) {
  const { client } = chain;
  const address = predeploys[name];
  const deployed = await deployTestContract(client, "Rollups", name);
  await client.setCode({ address, bytecode: (await client.getCode({ address: deployed })) ?? "0x" });
  const { abi } = testContract("Rollups", name);
  return async (...args: bigint[]): Promise<void> => {
    const hash = await client.writeContract({ address, abi, functionName: "set", args });
    await client.waitForTransactionReceipt({ hash });
  };
}
