import { readFileSync } from "node:fs";
import { z } from "zod";
import { ConfigError, describeIssues } from "./config.ts";

const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/, "expected a 20 byte hex address");
const wei = z.string().regex(/^\d+$/, "expected a whole number of wei, as a string").transform(BigInt);

/** Where a secret comes from: the name of an environment variable, or a file. */
const secretSource = z.union([z.strictObject({ env: z.string().min(1) }), z.strictObject({ file: z.string().min(1) })]);

/** Where a private key is; the key itself never stands here. */
const keySource = z.union([
  secretSource,
  /** An encrypted file (Web3 Secret Storage, version 3), and where its password is. */
  z.strictObject({ keystore: z.string().min(1), password: secretSource }),
  /** In AWS KMS: an id, an ARN or an alias. Credentials come from AWS' usual places. */
  z.strictObject({
    awsKms: z.strictObject({ keyId: z.string().min(1), region: z.string().min(1), endpoint: z.url().optional() }),
  }),
  /** In Google Cloud KMS: the whole name of a key version. Credentials come from Google's usual places. */
  z.strictObject({
    googleKms: z.strictObject({
      name: z.string().regex(/^projects\/.+\/cryptoKeyVersions\/\d+$/),
      endpoint: z.url().optional(),
    }),
  }),
]);

const domain = z.strictObject({ name: z.string(), version: z.string() });

const everyAsset = {
  /** CAIP-19, for example eip155:8453/erc20:0x8335…; compared in lower case. */
  asset: z
    .string()
    .regex(/^eip155:\d+\/erc20:0x[0-9a-fA-F]{40}$/)
    .toLowerCase(),
  symbol: z.string().min(1),
  name: z.string().min(1),
  decimals: z.number().int().min(0).max(36),
  /** Currency it stands for at 1:1, for example iso4217/USD. */
  peg: z.string().regex(/^iso4217\/[A-Z]{3}$/),
  iconUrl: z.url().optional(),
};
/** Gas one transfer may take inside a batch; unused gas is not paid. */
const transferGas = (usual: number) => z.number().int().min(50_000).max(1_000_000).default(usual);

/** How a buyer pays with an asset is a property of the asset; it is compared with the chain at start. */
const evmAsset = z.discriminatedUnion("kind", [
  z.strictObject({
    ...everyAsset,
    /** The token takes signed authorizations (EIP-3009), as USDC does: no gas for the buyer. */
    kind: z.literal("eip3009"),
    /** EIP-712 domain; the separator that follows from it is compared with the token's own at start. */
    domain,
    /** The token also takes signatures of any length (USDC since 2.2), which smart wallets need. */
    bytesSignatures: z.boolean().default(true),
    transferGas: transferGas(130_000),
  }),
  z.strictObject({
    ...everyAsset,
    /** Any other ERC-20, by a Permit2 signature for our Collector. */
    kind: z.literal("permit2"),
    /**
     * How a buyer lets Permit2 take the token the first time: by a signed EIP-2612 permit (no gas for the buyer), by an
     * approve transaction, or by two where the token changes an allowance through zero only, as USDT on Ethereum.
     */
    allowance: z.discriminatedUnion("by", [
      z.strictObject({ by: z.literal("permit"), domain }),
      z.strictObject({ by: z.literal("approve"), fromZero: z.boolean().default(false) }),
    ]),
    transferGas: transferGas(220_000),
  }),
  z.strictObject({
    ...everyAsset,
    /** Any ERC-20, by the buyer's own transaction. */
    kind: z.literal("push"),
    transferGas: transferGas(130_000),
  }),
]);

const evmNetwork = z.strictObject({
  chain: z.string().regex(/^eip155:\d+$/),
  name: z.string().min(1),
  iconUrl: z.url().optional(),
  /** Tried in this order. The name is what metrics and logs show; the URL may hold a secret. */
  rpc: z.array(z.strictObject({ name: z.string().regex(/^[a-z0-9-]+$/), url: z.url() })).min(1),
  rpcTimeoutMs: z.number().int().min(100).default(10_000),
  /** Usual time between blocks, milliseconds. */
  blockMs: z.number().int().min(10),
  /** How often the watcher asks for a new head, milliseconds. */
  pollMs: z.number().int().min(10),
  /** When what was seen counts as confirmed: so many blocks (1 = included), or the chain's own tag. */
  finality: z.union([z.strictObject({ blocks: z.number().int().min(1) }), z.enum(["safe", "finalized"])]),
  multicall: address,
  /** Uniswap's Permit2; it has this address nearly everywhere. Only assets of kind permit2 need it. */
  permit2: address.default("0x000000000022D473030F116dDEE9F6B43aC78BA3"),
  /**
   * Contracts that may be called to deploy a payer's smart wallet before its payment (ERC-6492). None unless named: who
   * is called here is called with our gas.
   */
  walletFactories: z.array(address).default([]),
  /** Gas that one transfer of a smart wallet may take, its deployment included; it goes alone. */
  walletGas: z.number().int().min(100_000).max(5_000_000).default(1_000_000),
  /** A contract that knows sanctioned accounts: `isSanctioned(address)`, as Chainalysis' oracle has it. */
  screening: z.strictObject({ oracle: address }).optional(),
  fees: z.strictObject({
    /** No transaction of ours ever offers more than this per gas. */
    maxFeePerGas: wei,
    priorityFeePerGas: wei,
  }),
  /** A batch takes as many transfers as fit into this much gas. */
  batchGas: z.number().int().min(200_000).default(4_000_000),
  /** Nonces a lane may have unconfirmed. */
  laneWindow: z.number().int().min(1).default(32),
  treasury: z.strictObject({ address, key: keySource }),
  lanes: z.array(z.strictObject({ address, key: keySource })).min(1),
  assets: z.array(evmAsset).min(1),
});

const Networks = z.strictObject({
  /** Part of every authorization nonce, so that two deployments on one treasury cannot meet. */
  deployment: z.string().regex(/^[-_.a-zA-Z0-9]{1,64}$/, "expected up to 64 letters, digits, dots, dashes"),
  chains: z.array(evmNetwork).min(1),
});

export type Networks = Readonly<z.infer<typeof Networks>>;
export type EvmNetwork = Networks["chains"][number];
export type EvmAsset = EvmNetwork["assets"][number];
export type KeySource = z.infer<typeof keySource>;
export type SecretSource = z.infer<typeof secretSource>;

/** Checks a parsed networks document. Throws ConfigError, naming the member and never its value. */
export function parseNetworks(document: unknown, where = "the networks document"): Networks {
  const parsed = Networks.safeParse(document, { reportInput: false });
  if (!parsed.success) throw new ConfigError(describeIssues(where, parsed.error));
  for (const [index, network] of parsed.data.chains.entries()) {
    for (const [at, entry] of network.assets.entries()) {
      if (!entry.asset.startsWith(`${network.chain}/`))
        throw new ConfigError(`${where} is not usable:\n  chains.${index}.assets.${at}.asset: is on another chain`);
    }
  }
  const chains = new Set(parsed.data.chains.map((network) => network.chain));
  if (chains.size !== parsed.data.chains.length)
    throw new ConfigError(`${where} is not usable:\n  chains: one chain stands twice`);
  return Object.freeze(parsed.data);
}

/** Reads the one file that says which chains, assets and keys are used. Throws ConfigError. */
export function readNetworks(file: string): Networks {
  let document: unknown;
  try {
    document = JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw new ConfigError(`the networks file (NETWORKS_FILE) cannot be read as JSON`, { cause });
  }
  return parseNetworks(document, "the networks file (NETWORKS_FILE)");
}

/** Fetches a secret from where the networks file says. Throws ConfigError that names the place, never the secret. */
export function readSecret(source: SecretSource, env: NodeJS.ProcessEnv = process.env): string {
  // A file ends with a line feed that is not the secret's; blanks may be.
  const text = ("env" in source ? env[source.env] : readText(source.file))?.replace(/\r?\n$/, "");
  if (!text) throw new ConfigError(`the ${placeOf(source)} that the networks file names is missing or empty`);
  return text;
}

/** The same for a private key. */
export function readKey(source: SecretSource, env: NodeJS.ProcessEnv = process.env): `0x${string}` {
  const key = ("env" in source ? env[source.env] : readText(source.file))?.trim();
  if (key === undefined || !/^0x[0-9a-fA-F]{64}$/.test(key))
    throw new ConfigError(`the private key in ${placeOf(source)} is missing or is not 0x and 64 hex digits`);
  return key as `0x${string}`;
}

/** A file that the networks file names. Throws ConfigError. */
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
