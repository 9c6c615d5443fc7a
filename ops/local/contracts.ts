import { getAddress } from "viem";
import type { ChainClient } from "./chain-client.ts";
import { adoptContracts, type Contracts, deployContracts } from "./usdc.ts";

/** Multicall3 has one address on nearly every network. */
const usualMulticall = "0xcA11bde05977b3631167028862bE2a173976CA11";

/** Fresh contracts on an empty chain; with ANVIL_FORK_URL those the network has, FORK_USDC naming its USDC. */
export async function setUpContracts(chain: ChainClient): Promise<Contracts> {
  if (!process.env.ANVIL_FORK_URL) return await deployContracts(chain);
  const token = process.env.FORK_USDC;
  if (!token) throw new Error("ANVIL_FORK_URL is set: FORK_USDC must name the address of USDC on that network");
  const multicall = process.env.FORK_MULTICALL || usualMulticall;
  return await adoptContracts(chain, { token: getAddress(token), multicall: getAddress(multicall) });
}
