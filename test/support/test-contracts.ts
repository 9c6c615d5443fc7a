import type { Abi, Hex } from "viem";
import {
  type CollectorParts,
  collectorAddress,
  encodeCollectorDeployment,
} from "../../chains/evm/collector-contract.ts";
import { disburserAddress, encodeDisburserDeployment } from "../../chains/evm/disburser-contract.ts";
import type { Compiled } from "../../contracts/compile.ts";
import type { ChainClient } from "../../local/chain-client.ts";
import { compileOnce } from "./compiled-contracts.ts";

type TestFile =
  | "Permit2"
  | "Tokens"
  | "Wallets"
  | "RefusingWallet"
  | "Hostile"
  | "Oracle"
  | "Feed"
  | "Authorized"
  | "Traffic"
  | "Rollups";

const compiled = new Map<string, Record<string, Compiled>>();

/** Returns a contract of test/support/contracts. Throws when the file has no such contract. */
export function testContract(file: TestFile, name: string): { abi: Abi; bytecode: Hex } {
  const all = compiled.get(file) ?? compileOnce(`${file}.sol`);
  compiled.set(file, all);
  const found = all[name];
  if (!found) throw new Error(`${file}.sol has no contract ${name}`);
  return { abi: found.abi as Abi, bytecode: found.bytecode };
}

/** Deploys a test contract without constructor arguments. Returns its address in lower case. */
export async function deployTestContract(client: ChainClient, file: TestFile, name: string): Promise<Hex> {
  const hash = await client.deployContract({ ...testContract(file, name), args: [] });
  const { contractAddress } = await client.waitForTransactionReceipt({ hash });
  if (!contractAddress) throw new Error(`${name} was not deployed`);
  return contractAddress.toLowerCase() as Hex;
}

/** Deploys a Collector through the CREATE2 deployer. Returns its address. */
export async function deployCollector(client: ChainClient, parts: CollectorParts): Promise<Hex> {
  const hash = await client.sendTransaction(encodeCollectorDeployment(parts));
  await client.waitForTransactionReceipt({ hash });
  return collectorAddress(parts);
}

/** Deploys a treasury's Disburser through the CREATE2 deployer. Returns its address. */
export async function deployDisburser(client: ChainClient, treasury: Hex): Promise<Hex> {
  const hash = await client.sendTransaction(encodeDisburserDeployment(treasury));
  await client.waitForTransactionReceipt({ hash });
  return disburserAddress(treasury);
}
