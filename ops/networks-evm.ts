import { z } from "zod";
import { evmAddressPattern, evmAssetPattern } from "./caip-patterns.ts";
import { everyAsset, everyNetwork, rpcEndpoint, secretSource } from "./networks-shared.ts";

const address = z.string().regex(evmAddressPattern, "expected a 20 byte hex address");
const wei = z.string().regex(/^\d+$/, "expected a whole number of wei, as a string").transform(BigInt);

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

const everyToken = {
  ...everyAsset,
  /** CAIP-19, for example eip155:8453/erc20:0x8335…; compared in lower case. */
  asset: z.string().regex(evmAssetPattern).toLowerCase(),
};
/** Gas one transfer may take inside a batch; unused gas is not paid. */
const transferGas = (usual: number) => z.number().int().min(50_000).max(1_000_000).default(usual);

/** How a buyer pays with an asset is a property of the asset; it is compared with the chain at start. */
const evmAsset = z.discriminatedUnion("kind", [
  z.strictObject({
    ...everyToken,
    /** The token takes signed authorizations (EIP-3009), as USDC does: no gas for the buyer. */
    kind: z.literal("eip3009"),
    /** EIP-712 domain; the separator that follows from it is compared with the token's own at start. */
    domain,
    /** The token also takes signatures of any length (USDC since 2.2), which smart wallets need. */
    bytesSignatures: z.boolean().default(true),
    transferGas: transferGas(130_000),
  }),
  z.strictObject({
    ...everyToken,
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
    ...everyToken,
    /** Any ERC-20, by the buyer's own transaction. */
    kind: z.literal("push"),
    transferGas: transferGas(130_000),
  }),
]);

const publicUrl = z.url({ protocol: /^https$/, normalize: true, error: "expected an https URL" });

/** What wallets that do not know a network are told of it, so that they add it (EIP-3085). Everybody may see it. */
const forWallets = z.strictObject({
  /** Endpoints for everybody; never our own, whose URLs may hold a secret. */
  rpc: z.array(publicUrl).min(1),
  explorer: publicUrl.optional(),
  /** What gas is paid in; 18 decimals. */
  currency: z
    .strictObject({ name: z.string().min(1), symbol: z.string().regex(/^[A-Za-z0-9]{2,6}$/) })
    .default({ name: "Ether", symbol: "ETH" }),
});

const entry = z.strictObject({
  ...everyNetwork,
  chain: z.templateLiteral(["eip155:", z.int().min(1)]),
  rpc: z.array(rpcEndpoint).min(1),
  /** Usual time between blocks, milliseconds. */
  blockMs: z.number().int().min(10),
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
  /**
   * Gas that transactions may spend without moving money. A contract wallet can pass every simulation and burn what its
   * transaction is given: these bound what that costs (docs/decisions/contract-wallets.md). Of all contract wallets of the
   * chain within an hour; those beyond wait, and new ones are refused.
   */
  walletGasPerHour: z.number().int().min(0).default(10_000_000),
  /** The same for contract wallets whose code is the same. */
  walletGasPerCode: z.number().int().min(0).default(5_000_000),
  /** Of one payer, a key or a contract, within a day; it is barred for the rest of that day. */
  walletGasPerPayer: z.number().int().min(0).default(3_200_000),
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
  /**
   * Relayer keys. Of two or more the last one sends for contract wallets only, so that payers with plain keys never wait
   * behind code; with one alone, contract wallets come after everything else, one at a time.
   */
  lanes: z.array(z.strictObject({ address, key: keySource })).min(1),
  assets: z.array(evmAsset).min(1),
  /** Without it, a buyer whose wallet does not know the network adds it himself. */
  forWallets: forWallets.optional(),
});

/** An EVM chain's entry. */
export const evmNetwork = entry.superRefine(({ rpc, forWallets }, context) => {
  const own = new Set(rpc.map(({ url }) => URL.parse(url)?.href));
  for (const [index, url] of forWallets?.rpc.entries() ?? [])
    if (own.has(url))
      context.addIssue({
        code: "custom",
        path: ["forWallets", "rpc", index],
        message: "stands in rpc too: buyers are never told of our own endpoints",
      });
});

export type EvmNetwork = Readonly<z.infer<typeof evmNetwork>>;
export type EvmAsset = EvmNetwork["assets"][number];
export type KeySource = z.infer<typeof keySource>;
