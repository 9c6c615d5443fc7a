import { createServer } from "node:http";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { readAccounts, readBlockhash, readFinal, readHead } from "../../../../chains/solana/cluster-state.ts";
import { readRent } from "../../../../chains/solana/nonce-accounts.ts";
import { openSolanaChain, type SolanaChain } from "../../../../chains/solana/open-solana-chain.ts";
import { readStatuses } from "../../../../chains/solana/signature-statuses.ts";
import { listSignatures } from "../../../../chains/solana/transaction-history.ts";
import { describeSolana } from "../../../../local/solana-entry.ts";
import { createMetrics } from "../../../../runtime/metrics.ts";
import { parseNetworks, type SolanaNetwork } from "../../../../runtime/networks/read-networks.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { listen } from "../../../support/listen.ts";
import { makeSolanaKeys, startTestSolana } from "../../../support/test-solana.ts";

const solana = await startTestSolana();
const keys = await makeSolanaKeys(solana);
const first = await startFaultProxy({ target: solana.url });

/** Opens the chain again, so that no endpoint is suspended. */
function openChain(rpcUrls = [first.url, solana.url]): SolanaChain {
  const { id, mint, slotMs } = solana;
  const entry = describeSolana({ id, mints: [mint], keys, rpcUrls, slotMs });
  const [network] = parseNetworks({ deployment: "test", chains: [entry] }).chains;
  return openSolanaChain(network as SolanaNetwork, createMetrics(new Registry(), "worker"));
}

const reads: [string, (chain: SolanaChain) => Promise<unknown>][] = [
  ["the newest blockhash", readBlockhash],
  ["the head", readHead],
  ["the newest final slot", readFinal],
  ["accounts", (chain) => readAccounts(chain, chain.lanes)],
  ["statuses", (chain) => readStatuses(chain, ["1".repeat(64)], { history: true })],
  ["a history", (chain) => listSignatures(chain, { account: chain.lanes[0] ?? "", atSlot: 0 })],
  ["a rent", (chain) => readRent(chain)],
];

test.each(reads)("%s is read from the second endpoint while the first one does not answer", async (_what, read) => {
  first.refuse(true);
  expect(await read(openChain())).toBeDefined();
});

test.each(reads)(
  "%s is not asked for again while an endpoint says that its rate limit is reached",
  async (_what, read) => {
    let asked = 0;
    const server = createServer((_request, response) => {
      asked += 1;
      response.writeHead(429, { "retry-after": "30" }).end("too many requests");
    });
    const chain = openChain([await listen(server)]);
    await expect(read(chain)).rejects.toMatchObject({ code: "rpc_unreachable" });
    await expect(read(chain)).rejects.toMatchObject({ code: "rpc_unreachable" });
    // The networks file lists the URL twice, because two are required.
    expect(asked).toBe(2);
  },
);

test("an endpoint's error is not read as a rent of zero", async () => {
  first.refuse(false);
  first.fail(({ method }) =>
    method === "getMinimumBalanceForRentExemption" ? { code: -32_603, message: "no" } : undefined,
  );
  // The other endpoint knows the rent.
  expect(await readRent(openChain())).toBe(1_447_680n);
  first.fail(undefined);
});

test("a rent that no account needs is not paid: the next endpoint is asked", async () => {
  const liar = await startAlteringProxy({ target: solana.url });
  liar.alter((method, _params, result) => (method === "getMinimumBalanceForRentExemption" ? 9_900_000_000 : result));
  expect(await readRent(openChain([liar.url, solana.url]))).toBe(1_447_680n);
});
