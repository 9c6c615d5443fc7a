import { newSolanaKey } from "../../local/solana-client.ts";
import { describeSolana, MAX_PRIORITY_FEE, type SolanaChainKeys } from "../../local/solana-entry.ts";
import { tokenAccountOf } from "../../local/spl-tokens.ts";
import { makeSolanaKeys, startTestSolana, type TestSolana } from "../support/test-solana.ts";
import { type Endpoint, startFaultyEndpoint } from "./faulty-endpoint.ts";
import { solanaCluster } from "./faulty-solana-endpoint.ts";
import { DUST } from "./money-invariants.ts";
import type { Evidence } from "./payment-invariants.ts";
import { scanSolana } from "./solana-scan.ts";

/** A local Solana and two faulty endpoints in front of it. */
export type SolanaEnvironment = {
  /** `solana:` and the first 32 characters of the genesis hash. */
  id: string;
  solana: TestSolana;
  keys: SolanaChainKeys;
  /** Both forward to the same cluster; the service knows them as two endpoints. */
  endpoints: readonly Endpoint[];
  /** Its entry of the networks document. */
  network: Record<string, unknown>;
  settlements: { asset: string; destination: string }[];
};

const slotMs = 150;
/** The finality depth in slots; rollbacks of the run are less deep. */
export const finalityDepthSlots = 10;

export async function startSolanaEnvironment(): Promise<SolanaEnvironment> {
  const solana = await startTestSolana({ own: true, slotMs, finalityDepth: finalityDepthSlots });
  const { id, asset, mint } = solana;
  const keys = await makeSolanaKeys(solana, 2);
  const start = () =>
    startFaultyEndpoint({ target: solana.url, cluster: solanaCluster({ slotMs, finalityDepthSlots }) });
  const endpoints = await Promise.all([start(), start()]);
  const change = { finality: "finalized", rpcTimeoutMs: 2_000, nonceAccounts: 4 };
  const rpcUrls = endpoints.map(({ url }) => url);
  const network = describeSolana({ id, mints: [mint], keys, rpcUrls, slotMs, change });
  return {
    id,
    solana,
    keys,
    endpoints,
    network: { ...network, assets: network.assets.map((one) => ({ ...one, dust: String(DUST) })) },
    settlements: [{ asset, destination: `${id}:${newSolanaKey().address}` }],
  };
}

/** Returns the evidence from the cluster at the end of the run. */
export async function collectSolanaEvidence(
  environment: Pick<SolanaEnvironment, "solana" | "keys">,
): Promise<Evidence["solana"]> {
  const { url, mint } = environment.solana;
  const treasury = environment.keys.treasury.address;
  const treasuryAccount = tokenAccountOf(mint, treasury);
  const lanes = environment.keys.lanes.map(({ address }) => address);
  const scan = await scanSolana({ url, mint: mint.address, treasuryAccount, lanes });
  return { scan, treasury, feeCeiling: MAX_PRIORITY_FEE };
}
