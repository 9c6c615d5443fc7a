import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Registry } from "prom-client";
import { createNonceAccountInstructions, listNonceAddresses, readRent } from "../../chains/solana/nonce-accounts.ts";
import { openSolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { makeScratch } from "../../local/scratch-folder.ts";
import { keypairOf, sendAll } from "../../local/solana-client.ts";
import type { SolanaChainKeys } from "../../local/solana-entry.ts";
import { fundTokens } from "../../local/spl-tokens.ts";
import type { Finding } from "../../ops/preflight/finding.ts";
import { runProgram } from "../../ops/preflight/program.ts";
import { createMetrics } from "../../runtime/metrics.ts";
import { parseNetworks } from "../../runtime/networks/read-networks.ts";
import { addCleanup } from "./cleanups.ts";
import { mine, networksFileFor } from "./evm-chain.ts";
import { startSolanaProxy } from "./solana-test-endpoint.ts";
import { deployTestContract, testContract } from "./test-contracts.ts";
import { makeSolanaKeys, startTestSolana, type TestSolana } from "./test-solana.ts";
import { startTokenKinds } from "./token-kinds.ts";

/** The part of a URL's path that no output may contain. */
export const SECRET = "provider-key-5d41402abc4b2a76";
/** The price feed's answer. */
export const PRICE = 108_500_000;
/** Age of the price feed's answer, seconds. */
const PRICE_AGE = 600;

/** A networks document that tests change before a run. */
// biome-ignore lint/suspicious/noExplicitAny: tests change members of any depth.
export type Document = any;

/** A run of preflight: its exit code, its output, and the findings of its JSON document. */
export type PreflightRun = { code: number; stdout: string; stderr: string; findings: Finding[] };

/**
 * Starts an EVM chain with tokens of every kind, a price feed and a sanctions oracle, and a Solana cluster with the accounts
 * that the first worker creates. Each chain has two endpoints: its own URL, and a proxy that a test can make misbehave.
 */
export async function startPreflight() {
  const [kinds, solana] = await Promise.all([startTokenKinds(), startTestSolana()]);
  const { chain } = kinds;
  const feed = await deployTestContract(chain.client, "Feed", "Feed");
  const { abi } = testContract("Feed", "Feed");
  const args = [BigInt(PRICE), BigInt(Math.floor(Date.now() / 1_000) - PRICE_AGE)];
  await chain.client.writeContract({ address: feed, abi, functionName: "set", args });
  const oracle = await deployTestContract(chain.client, "Oracle", "Oracle");
  await mine(chain, 200);

  const [evmProxy, solanaProxy] = await Promise.all([startSolanaProxy(chain), startSolanaProxy(solana)]);
  const withSecret = (url: string) => `${url}/${SECRET}`;
  const keys = await makeSolanaKeys(solana);
  const file = await networksFileFor(chain, {
    rpcUrls: [chain.url, withSecret(evmProxy.fault.url)],
    change: { ...kinds.change, screening: { oracle } },
    solana: { chain: solana, keys, rpcUrls: [solana.url, withSecret(solanaProxy.fault.url)] },
  });
  const complete: Document = JSON.parse(await readFile(file, "utf8"));
  complete.prices = [{ base: "iso4217/EUR", quote: "iso4217/USD", chain: chain.id, feed, maxAgeSeconds: 86_400 }];
  await createSolanaAccounts(complete, solana, keys);

  const folder = await makeScratch("preflight");
  addCleanup(() => rm(folder, { recursive: true, force: true }));
  const list = join(folder, "screened-accounts");
  await writeFile(list, `0x${"5c".repeat(20)} # not served\n`);
  const env: Record<string, string> = { ...chain.keys.env, ...keys.env, SCREENING_LIST_FILE: list };
  const networksFile = join(folder, "networks.json");

  return {
    ...kinds,
    solana,
    evmProxy,
    solanaProxy,
    env,
    networksFile,
    /** Returns a copy of the networks document, with all chains or with those of one family. */
    document(family: "eip155:" | "solana:" | "" = ""): Document {
      const copy = structuredClone(complete);
      copy.chains = copy.chains.filter(({ chain }: { chain: string }) => chain.startsWith(family));
      if (family === "solana:") copy.prices = [];
      return copy;
    },
    /** Runs preflight on a document in this process, as JSON unless `args` are given. */
    async run(
      document: Document,
      { env: more = {}, now = () => new Date(), args = ["--json"] }: RunOptions = {},
    ): Promise<PreflightRun> {
      await writeFile(networksFile, JSON.stringify(document));
      const output = { stdout: "", stderr: "" };
      const code = await runProgram(["--networks", networksFile, ...args], {
        env: { ...env, ...more },
        now,
        write: (text) => {
          output.stdout += text;
        },
        writeError: (text) => {
          output.stderr += text;
        },
        showProgress: () => undefined,
      });
      return { code, ...output, findings: args.includes("--json") ? JSON.parse(output.stdout).findings : [] };
    },
  };
}

type RunOptions = { env?: Record<string, string>; now?: () => Date; args?: string[] };

/** Creates what the first worker creates: the treasury's token account and the nonce accounts. */
async function createSolanaAccounts(document: Document, solana: TestSolana, keys: SolanaChainKeys): Promise<void> {
  await fundTokens(solana.client, solana.mint, [keys.treasury.address], 0n);
  const networks = parseNetworks(document);
  const network = networks.chains.find((one) => "nonceAccounts" in one);
  const [payer] = keys.lanes;
  if (!network || !("nonceAccounts" in network) || !payer) throw new Error("the document has no Solana cluster");
  const chain = openSolanaChain(network, createMetrics(new Registry(), "worker"));
  const rent = await readRent(chain);
  const places = await listNonceAddresses(chain, networks.deployment);
  await sendAll(
    solana.client,
    places.map((place) => ({
      instructions: createNonceAccountInstructions(chain, place, rent),
      signers: [keypairOf(payer)],
    })),
  );
}
