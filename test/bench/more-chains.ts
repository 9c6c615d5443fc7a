import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startAnvil } from "../../local/anvil.ts";
import { guardPool } from "../../local/anvil-pool.ts";
import { openChain } from "../../local/chain-client.ts";
import { type KeyPair, type NetworkOptions, newChainKeys, newKey } from "../../local/networks-document.ts";
import { setUpContracts } from "../../local/set-up-contracts.ts";
import type { StackFile } from "../../local/stack-file.ts";
import { fundGas, mintUsdc } from "../../local/usdc.ts";
import { startCountingProxy } from "./counting-proxy.ts";

/** A chain beside the stack's own: what buyers need of it, and its entry in the networks document. */
export type MoreChain = { evm: StackFile["evm"]; network: NetworkOptions; close: () => Promise<unknown> };

/** The first chain id after that of the stack's own chain. */
const FIRST_ID = 31_338;
const FUNDS = 1_000_000_000_000n;

/** Starts an Anvil with funded lanes and buyers, which the service reaches with a delay. Its keys go to files in `dir`. */
export async function startMoreChain({
  index,
  lanes,
  buyers: count,
  batchGas,
  delayMs,
  dir,
}: {
  index: number;
  lanes: number;
  buyers: number;
  batchGas: number;
  delayMs: number;
  dir: string;
}): Promise<MoreChain> {
  const anvil = await startAnvil({ chainId: FIRST_ID + index });
  const endGuard = guardPool(anvil.url);
  const proxy = await startCountingProxy(anvil.url, { delayMs });
  const client = openChain(anvil.url);
  const contracts = await setUpContracts(client, 1);
  const keys = newChainKeys(lanes);
  const buyers = Array.from({ length: count }, newKey);
  const addressOf = ({ address }: KeyPair) => address;
  await fundGas(client, keys.lanes.map(addressOf));
  await mintUsdc(client, contracts.token, buyers.map(addressOf), FUNDS);
  const folder = join(dir, `chain-${index}`);
  await mkdir(folder, { recursive: true });
  const save = async (pair: KeyPair, name: string) => {
    const file = join(folder, name);
    await writeFile(file, pair.privateKey, { mode: 0o600 });
    return { address: pair.address, key: { file } };
  };
  const change = {
    batchGas,
    treasury: await save(keys.treasury, "treasury"),
    lanes: await Promise.all(keys.lanes.map((pair, lane) => save(pair, `lane-${lane}`))),
  };
  const chain = `eip155:${FIRST_ID + index}`;
  return {
    network: { chain: client, contracts, keys, rpcUrls: [proxy.url], blockMs: 1_000, change },
    evm: {
      chain,
      rpcUrl: anvil.url,
      asset: `${chain}/erc20:${contracts.token.toLowerCase()}`,
      token: contracts.token,
      treasury: keys.treasury.address,
      relayers: keys.lanes.map(addressOf),
      destination: `${chain}:${newKey().address}`,
      buyers,
    },
    close: async () => {
      endGuard();
      await anvil.close();
    },
  };
}
