import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { type ChainClient, openChain } from "../local/chain-client.ts";
import { type KeyPair, networksDocument, newChainKeys, newKey } from "../local/networks-document.ts";
import { deployContracts, fundGas, mintUsdc } from "../local/usdc.ts";
import { parseNetworks } from "../networks.ts";

const env = z
  .object({
    RPC_URL: z.url(),
    /** Read by api and workers. */
    NETWORKS_DIR: z.string().min(1),
    /** Read by workers only. */
    KEYS_DIR: z.string().min(1),
    LANES: z.coerce.number().int().min(1).default(2),
  })
  .parse(process.env);

const networksFile = join(env.NETWORKS_DIR, "networks.json");
const chain = openChain(env.RPC_URL);

/** True when an earlier run has set this very chain up; a chain that was thrown away needs everything anew. */
async function isPrepared(client: ChainClient): Promise<boolean> {
  if (!existsSync(networksFile)) return false;
  const [network] = parseNetworks(JSON.parse(readFileSync(networksFile, "utf8"))).chains;
  if (network === undefined) return false;
  return (await client.getCode({ address: network.multicall as `0x${string}` })) !== undefined;
}

function saveKey(name: string, pair: KeyPair): { address: string; key: { file: string } } {
  const file = join(env.KEYS_DIR, name);
  writeFileSync(file, pair.privateKey, { mode: 0o600 });
  return { address: pair.address, key: { file } };
}

if (await isPrepared(chain)) {
  console.log("the chain is set up already");
} else {
  const contracts = await deployContracts(chain);
  const keys = newChainKeys(env.LANES);
  const buyers = Array.from({ length: 20 }, newKey);
  await fundGas(
    chain,
    keys.lanes.map(({ address }) => address),
  );
  await mintUsdc(
    chain,
    contracts.token,
    buyers.map(({ address }) => address),
    1_000_000_000n,
  );
  const change = {
    treasury: saveKey("treasury", keys.treasury),
    lanes: keys.lanes.map((pair, index) => saveKey(`lane-${index}`, pair)),
  };
  const document = await networksDocument({
    chain,
    contracts,
    keys,
    rpcUrls: [env.RPC_URL],
    deployment: "compose",
    change,
  });
  // World-readable on purpose: the demo's buyers are worth nothing, and a person will want to sign as one.
  writeFileSync(join(env.NETWORKS_DIR, "buyers.json"), `${JSON.stringify(buyers, null, 2)}\n`);
  // Last: its presence says that everything before it is done.
  writeFileSync(networksFile, `${JSON.stringify(document, null, 2)}\n`);
  console.log(`the chain is set up: token ${contracts.token}, ${env.LANES} lanes, ${buyers.length} buyers`);
}
