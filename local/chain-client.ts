import { createTestClient, defineChain, http, publicActions, walletActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { localChainId } from "./anvil.ts";

export type ChainClient = ReturnType<typeof openChain>;

/** Returns a client of a local chain that can read, send with any key, mine, set balances and impersonate. */
export function openChain(url: string, chainId = localChainId) {
  const nativeCurrency = { name: "Ether", symbol: "ETH", decimals: 18 };
  const chain = defineChain({ id: chainId, name: "local", nativeCurrency, rpcUrls: { default: { http: [url] } } });
  // No retries: a test that breaks the chain must notice it at once.
  const transport = http(url, { retryCount: 0, timeout: 30_000 });
  return createTestClient({ chain, mode: "anvil", transport, pollingInterval: 20, cacheTime: 0, account: operator })
    .extend(publicActions)
    .extend(walletActions);
}

/** Anvil's first well-known account, which deploys and mints on local chains. It is worthless on any other chain. */
export const operator = privateKeyToAccount("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
