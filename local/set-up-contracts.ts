import { getAddress } from "viem";
import type { ChainClient } from "./chain-client.ts";
import { adoptContracts, type Contracts, deployContracts } from "./usdc.ts";

/** The address of Multicall3 on nearly every network. */
const usualMulticall = "0xcA11bde05977b3631167028862bE2a173976CA11";

/** Deploys contracts on an empty chain. With ANVIL_FORK_URL, uses those of the forked network; FORK_USDC names its USDC. */
export async function setUpContracts(chain: ChainClient, tokens = 1): Promise<Contracts> {
  if (!process.env["ANVIL_FORK_URL"]) return await deployContracts(chain, { tokens });
  const token = process.env["FORK_USDC"];
  if (!token) throw new Error("ANVIL_FORK_URL is set: set FORK_USDC to the address of USDC on that network");
  const multicall = process.env["FORK_MULTICALL"] || usualMulticall;
  return await adoptContracts(chain, { token: getAddress(token), multicall: getAddress(multicall) });
}
