import type { Say, Service } from "./service.ts";
import { fundSol, newSolanaKey, openSolana, type SolanaClient, type SolanaKey } from "./solana-client.ts";
import { describeSolana, newSolanaKeys, type SolanaChainKeys } from "./solana-entry.ts";
import { startSolana } from "./solana-process.ts";
import { fundTokens, type Mint, makeMint } from "./spl-tokens.ts";
import type { StackSettings } from "./stack-settings.ts";

export type LocalSolana = {
  client: SolanaClient;
  keys: SolanaChainKeys;
  mint: Mint;
  /** CAIP-2 and CAIP-19. */
  id: string;
  asset: string;
  /** They hold tokens and no SOL. */
  buyers: SolanaKey[];
  /** The merchant's account; the first payout creates its token account. */
  destination: string;
  /** Its entry in the networks document. */
  network: Record<string, unknown>;
};

/** A million dollars for each buyer, as on EVM. */
const buyerUsdc = 1_000_000_000_000n;
/** Lamports of a relayer, enough for some hundred thousand payments. */
const relayerLamports = 10_000_000_000n;

/** Sets up a mint, funded relayers and funded buyers on Solana. */
export async function setUpSolana(solana: Service, settings: StackSettings, say: Say): Promise<LocalSolana> {
  const client = await openSolana(solana.url);
  say("creating a mint on Solana");
  const mint = await makeMint(client);
  const keys = newSolanaKeys(settings.LANES);
  const buyers = Array.from({ length: settings.BUYERS }, newSolanaKey);
  say(`funding ${settings.LANES} relayers and ${settings.BUYERS} buyers on Solana`);
  const relayers = keys.lanes.map(({ address }) => address);
  await fundSol(client, relayers, relayerLamports);
  const owners = buyers.map(({ address }) => address);
  await fundTokens(client, mint, owners, buyerUsdc);
  const id = `solana:${(await client.connection.getGenesisHash()).slice(0, 32)}`;
  const { SOLANA_PROXY_URL = solana.url, SOLANA_SLOT_MS: slotMs } = settings;
  const network = describeSolana({ id, mints: [mint], keys, rpcUrls: [SOLANA_PROXY_URL], slotMs });
  const asset = `${id}/token:${mint.address}`;
  return { client, keys, mint, id, asset, buyers, destination: newSolanaKey().address, network };
}

/** Starts a Solana on the port of the settings, or uses the one that SOLANA_RPC_URL names. */
export function startStackSolana({ SOLANA_PORT, SOLANA_SLOT_MS }: StackSettings, say: Say): Promise<Service> {
  return startSolana({ port: SOLANA_PORT, slotMs: SOLANA_SLOT_MS, say });
}
