import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { listEvmNetworks, parseNetworks } from "../runtime/networks/read-networks.ts";
import { openChain } from "./chain-client.ts";
import { type KeyPair, networksDocument, newChainKeys, newKey } from "./networks-document.ts";
import { seedAccount } from "./seed-account.ts";
import { createEmptyStore, describeLimits } from "./signer-files.ts";
import { deployContracts, fundGas, mintUsdc } from "./usdc.ts";

/**
 * Sets up the chain of the compose file: contracts, keys, funded lanes and buyers, the networks file, and an account with a
 * merchant. A second run does nothing. An interrupted run starts over, because the files are written last.
 */
const env = z
  .object({
    RPC_URL: z.url(),
    DATABASE_URL: z.url(),
    /** Read by api and workers. */
    NETWORKS_DIR: z.string().min(1),
    /** Read by workers only: the keys of the lanes. */
    KEYS_DIR: z.string().min(1),
    /** Read by the signer only: the treasury's key, and the signer's own records. */
    TREASURY_DIR: z.string().min(1),
    SIGNER_STORE: z.string().min(1),
    LANES: z.coerce.number().int().min(1).default(2),
    BUYERS: z.coerce.number().int().min(1).default(20),
  })
  .parse(process.env);

const networksFile = join(env.NETWORKS_DIR, "networks.json");
const callersFile = join(env.NETWORKS_DIR, "callers.json");
const chain = openChain(env.RPC_URL);

/** Returns true when an earlier run has set up this chain. A chain that was deleted has to be set up again. */
async function isPrepared(): Promise<boolean> {
  if (!existsSync(networksFile) || !existsSync(callersFile)) return false;
  const [network] = listEvmNetworks(parseNetworks(JSON.parse(readFileSync(networksFile, "utf8"))));
  if (network === undefined) return false;
  return (await chain.getCode({ address: network.multicall })) !== undefined;
}

/** Writes a key of the networks document into a folder that only the workers, or only the signer, mount. */
function saveKey(folder: string, name: string, pair: KeyPair): { address: string; key: { file: string } } {
  const file = join(folder, name);
  writeFileSync(file, pair.privateKey, { mode: 0o600 });
  return { address: pair.address, key: { file } };
}

function saveJson(file: string, value: unknown): void {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
}

async function prepare(): Promise<string> {
  const contracts = await deployContracts(chain);
  const keys = newChainKeys(env.LANES);
  const buyers = Array.from({ length: env.BUYERS }, newKey);
  const addresses = (pairs: readonly KeyPair[]) => pairs.map(({ address }) => address);
  await fundGas(chain, addresses(keys.lanes));
  await mintUsdc(chain, contracts.token, addresses(buyers), 1_000_000_000n);
  const change = {
    treasury: saveKey(env.TREASURY_DIR, "treasury", keys.treasury),
    lanes: keys.lanes.map((pair, index) => saveKey(env.KEYS_DIR, `lane-${index}`, pair)),
  };
  const rpcUrls = [env.RPC_URL];
  const document = await networksDocument("compose", [{ chain, contracts, keys, rpcUrls, change }]);
  const id = `eip155:${await chain.getChainId()}`;
  const destination = newKey();
  const settlement = {
    asset: `${id}/erc20:${contracts.token.toLowerCase()}`,
    destination: `${id}:${destination.address}`,
  };
  const callers = await seedAccount(env.DATABASE_URL, settlement);
  // The chain is new, and so are the signer's records.
  createEmptyStore(env.SIGNER_STORE);
  saveJson(join(env.NETWORKS_DIR, "limits.jsonc"), describeLimits(parseNetworks(document)));
  saveJson(networksFile, document);
  saveJson(callersFile, { ...callers, ...settlement, buyers });
  return `the chain is set up: ${settlement.asset}, ${env.LANES} lanes, ${env.BUYERS} buyers; ${callersFile} has the API keys`;
}

console.log((await isPrepared()) ? "the chain is already set up" : await prepare());
