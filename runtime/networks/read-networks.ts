import { readFileSync } from "node:fs";
import { z } from "zod";
import { ConfigError, describeIssues } from "../config.ts";
import type { SecretSource } from "./common-members.ts";
import { type EvmNetwork, evmAddress, evmNetwork } from "./evm-network.ts";
import { readDocuments } from "./read-documents.ts";
import { type SolanaNetwork, solanaNetwork } from "./solana-network.ts";

/** One chain, parsed by the schema of its family, so that an error names the right member. */
const withChain = z.object({ chain: z.string() });
const network = z.unknown().transform((entry, context): EvmNetwork | SolanaNetwork => {
  const chain = withChain.safeParse(entry).data?.chain;
  const schema = chain?.startsWith("solana:") ? solanaNetwork : evmNetwork;
  const parsed = schema.safeParse(entry, { reportInput: false });
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues) context.addIssue({ ...issue } as Parameters<typeof context.addIssue>[0]);
  return z.NEVER;
});

const currency = z.string().regex(/^iso4217\/[A-Z]{3}$/, "expected a currency such as iso4217/EUR");
const feedMembers = {
  quote: currency,
  chain: z.string(),
  feed: evmAddress,
  /** Older answers are not used. Set it a little above the feed's heartbeat. */
  maxAgeSeconds: z.number().int().min(1),
  /**
   * Chainlink's L2 sequencer uptime feed of the chain; set it on every rollup that has one. While the sequencer is down, and
   * for `graceSeconds` after it is up again, prices may be older than their timestamps and are not used.
   */
  sequencer: z.strictObject({ feed: evmAddress, graceSeconds: z.number().int().min(0).default(3_600) }).optional(),
};
/** A Chainlink price feed on one of the EVM chains: the price of one unit of `base` in units of `quote`. */
export const priceFeed = z.strictObject({ base: currency, ...feedMembers });
/** A Chainlink feed of the price of a coin that pays for gas. It serves dashboards only, never a payment. */
export const nativePrice = z.strictObject({
  /** As the feed's own description calls it, such as ETH in "ETH / USD". */
  coin: z.string().regex(/^[A-Za-z0-9]{2,10}$/, "expected the symbol of a coin, such as ETH"),
  /** The chains whose transactions the coin pays for. */
  gasOf: z.array(z.string()).min(1),
  ...feedMembers,
});

const Networks = z.strictObject({
  /** Part of every authorization nonce, so that the nonces of two deployments on one treasury cannot collide. */
  deployment: z.string().regex(/^[-_.a-zA-Z0-9]{1,64}$/, "expected up to 64 letters, digits, dots, dashes"),
  chains: z.array(network).min(1),
  /** Sources of prices between currencies. None is needed when every payment is in the currency of its asset. */
  prices: z.array(priceFeed).default([]),
  /** Sources of the prices of the coins that pay for gas, for the cost of payments on the dashboards. */
  nativePrices: z.array(nativePrice).default([]),
});

export type Networks = Readonly<z.infer<typeof Networks>>;
export type { KeySource, SecretSource } from "./common-members.ts";
export type { EvmAsset, EvmNetwork } from "./evm-network.ts";
export type { SolanaAsset, SolanaNetwork } from "./solana-network.ts";
export type PriceFeed = Networks["prices"][number];
export type NativePrice = Networks["nativePrices"][number];
/** The entry of a chain. */
export type Network = Networks["chains"][number];

/** Returns the EVM chains of a networks file. */
export function listEvmNetworks(networks: Networks): EvmNetwork[] {
  return networks.chains.filter((one): one is EvmNetwork => one.chain.startsWith("eip155:"));
}

/** Validates a networks document. Throws a ConfigError that names the invalid member and never its value. */
export function parseNetworks(document: unknown, where = "the networks document"): Networks {
  const parsed = Networks.safeParse(document, { reportInput: false });
  if (!parsed.success) throw new ConfigError(describeIssues(where, parsed.error));
  for (const [index, network] of parsed.data.chains.entries()) {
    // Agreement counts endpoints by their names.
    if (new Set(network.rpc.map(({ name }) => name)).size < network.rpc.length)
      throw new ConfigError(`${where} is invalid:\n  chains.${index}.rpc: two endpoints have the same name`);
    for (const [at, entry] of network.assets.entries()) {
      if (!entry.asset.startsWith(`${network.chain}/`))
        throw new ConfigError(`${where} is invalid:\n  chains.${index}.assets.${at}.asset: belongs to another chain`);
      if (typeof entry.agreementThreshold === "string" && network.rpc.length < 2)
        throw new ConfigError(
          `${where} is invalid:\n  chains.${index}.assets.${at}.agreementThreshold: requires two endpoints in chains.${index}.rpc`,
        );
    }
  }
  checkWhole(parsed.data, where);
  return Object.freeze(parsed.data);
}

/** Checks that no chain, pair of currencies or price of gas occurs twice, and that every feed is on a chain. */
function checkWhole(networks: Networks, where: string): void {
  const chains = new Set<string>(networks.chains.map((network) => network.chain));
  if (chains.size !== networks.chains.length)
    throw new ConfigError(`${where} is invalid:\n  chains: a chain is listed twice`);
  const pairs = new Set<string>();
  for (const [index, { chain, base, quote }] of networks.prices.entries()) {
    const at = `${where} is invalid:\n  prices.${index}`;
    if (!chain.startsWith("eip155:") || !chains.has(chain))
      throw new ConfigError(`${at}.chain: is not an EVM chain of this file`);
    const pair = [base, quote].sort().join(" ");
    if (base === quote || pairs.has(pair))
      throw new ConfigError(`${at}: repeats a pair of currencies, or names one currency twice`);
    pairs.add(pair);
  }
  const priced = new Set<string>();
  for (const [index, { chain, gasOf }] of networks.nativePrices.entries()) {
    const at = `${where} is invalid:\n  nativePrices.${index}`;
    if (!chain.startsWith("eip155:") || !chains.has(chain))
      throw new ConfigError(`${at}.chain: is not an EVM chain of this file`);
    for (const paid of gasOf) {
      if (!chains.has(paid)) throw new ConfigError(`${at}.gasOf: names a chain that is not in this file`);
      if (priced.has(paid)) throw new ConfigError(`${at}.gasOf: names a chain that has a price already`);
      priced.add(paid);
    }
  }
}

/**
 * Reads the networks file: the chains, assets and keys of the deployment. A path of a folder reads all of its files as one;
 * each is complete, and all name the same deployment. Throws ConfigError.
 */
export function readNetworks(path: string): Networks {
  const parts = readDocuments(path).map(({ where, document }) => parseNetworks(document, where));
  const where = "the networks folder (NETWORKS_FILE)";
  const [deployment = "", ...others] = new Set(parts.map((part) => part.deployment));
  if (others.length > 0) throw new ConfigError(`${where} is invalid:\n  deployment: differs between the files`);
  const chains = parts.flatMap((part) => part.chains);
  const prices = parts.flatMap((part) => part.prices);
  const networks = { deployment, chains, prices, nativePrices: parts.flatMap((part) => part.nativePrices) };
  checkWhole(networks, where);
  return Object.freeze(networks);
}

/** Reads a secret from the place that the networks file names. Throws a ConfigError that names the place, never the secret. */
export function readSecret(source: SecretSource, env: NodeJS.ProcessEnv = process.env): string {
  // The line feed at the end of a file is not part of the secret; other white space may be.
  const text = ("env" in source ? env[source.env] : readText(source.file))?.replace(/\r?\n$/, "");
  if (!text) throw new ConfigError(`the ${placeOf(source)} that the networks file names is missing or empty`);
  return text;
}

/** Reads a private key like `readSecret`; ignores white space around it. */
export function readKey(source: SecretSource, env: NodeJS.ProcessEnv = process.env): `0x${string}` {
  const key = ("env" in source ? env[source.env] : readText(source.file))?.trim();
  if (!isPrivateKey(key))
    throw new ConfigError(`the private key in ${placeOf(source)} is missing or is not 0x and 64 hex digits`);
  return key;
}

/** Returns true for the private key of an EVM account: 0x and 64 hex digits. */
export const isPrivateKey = (text: string | undefined): text is `0x${string}` => /^0x[0-9a-fA-F]{64}$/.test(text ?? "");

/** Returns the content of a file that the networks file names. Throws ConfigError. */
export function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new ConfigError(`file ${file}, which the networks file names, cannot be read`, { cause });
  }
}

function placeOf(source: SecretSource): string {
  return "env" in source ? `environment variable ${source.env}` : `file ${source.file}`;
}
