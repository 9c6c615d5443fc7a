import { createTestClient, custom, defineChain, type Hash, publicActions, RpcRequestError, walletActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { localChainId } from "./anvil.ts";
import { postJson } from "./post-json.ts";
import { waitUntil } from "./wait-until.ts";

/** The longest wait for a receipt, milliseconds. */
const RECEIPT_MS = 30_000;

export type ChainClient = ReturnType<typeof openChain>;

/** Returns a client of a local chain that can read, send with any key, mine, set balances and impersonate. */
export function openChain(url: string, chainId = localChainId) {
  const nativeCurrency = { name: "Ether", symbol: "ETH", decimals: 18 };
  const chain = defineChain({ id: chainId, name: "local", nativeCurrency, rpcUrls: { default: { http: [url] } } });
  // No retries: a test that breaks the chain must notice it at once.
  const transport = custom({ request: (call) => callChain(url, call) }, { retryCount: 0 });
  return createTestClient({ chain, mode: "anvil", transport, pollingInterval: 20, cacheTime: 0, account: operator })
    .extend(publicActions)
    .extend(walletActions)
    .extend((client) => ({
      // viem's own function asks for a receipt only when the height changes, and ignores the change while an answer is under way. With
      // a block per transaction, no other block follows, so it can wait until its timeout. An error counts as "not yet" here.
      waitForTransactionReceipt: ({ hash, timeout = RECEIPT_MS }: { hash: Hash; timeout?: number }) =>
        waitUntil(`a receipt of ${hash}`, () => client.getTransactionReceipt({ hash }), { withinMs: timeout }),
    }));
}

type Call = { method: string; params?: unknown };
type Answer = { result?: unknown; error?: { code: number; message: string; data?: unknown } };

/** Makes a JSON-RPC call. Throws an error response as viem's own transport does. */
async function callChain(url: string, { method, params = [] }: Call): Promise<unknown> {
  const body = { jsonrpc: "2.0", id: 1, method, params };
  const { result, error } = JSON.parse(await postJson(url, JSON.stringify(body))) as Answer;
  if (error !== undefined) throw new RpcRequestError({ body, error, url });
  return result;
}

/** Anvil's first well-known account, which deploys and mints on local chains. It is worthless on any other chain. */
export const operator = privateKeyToAccount("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
