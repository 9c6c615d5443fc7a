import { z } from "zod";
import { evmAssetPattern } from "../caip-patterns.ts";
import { assetMembers, keySource, networkMembers, rpcEndpoint } from "./common-members.ts";

export const evmAddress = z.templateLiteral(
  ["0x", z.string().regex(/^[0-9a-fA-F]{40}$/)],
  "expected a 20 byte hex address",
);
const wei = z.string().regex(/^\d+$/, "expected a whole number of wei, as a string").transform(BigInt);

/**
 * `wsUrl`: where the endpoint announces new blocks (eth_subscribe, `newHeads`), so that the watcher need not wait for its next
 * poll. An announcement is never trusted.
 */
const evmEndpoint = rpcEndpoint.extend({ wsUrl: z.url({ protocol: /^wss?$/ }).optional() });

const domain = z.strictObject({ name: z.string(), version: z.string() });

const everyToken = {
  ...assetMembers,
  /** CAIP-19, for example eip155:8453/erc20:0x8335…; compared in lower case. */
  asset: z.string().regex(evmAssetPattern).toLowerCase(),
};
/** Gas limit of one transfer inside a batch; unused gas is not paid. */
const transferGas = (usual: number) => z.number().int().min(50_000).max(1_000_000).default(usual);

/** An asset. Its `kind` says how buyers pay with it, and is compared with the chain at start. */
const evmAsset = z.discriminatedUnion("kind", [
  z.strictObject({
    ...everyToken,
    /** The token accepts signed authorizations (EIP-3009), as USDC does: the buyer needs no gas. */
    kind: z.literal("eip3009"),
    /** EIP-712 domain; its separator is compared with that of the token at start. */
    domain,
    /** The token also accepts signatures of any length (USDC since 2.2), which smart wallets need. */
    bytesSignatures: z.boolean().default(true),
    transferGas: transferGas(130_000),
  }),
  z.strictObject({
    ...everyToken,
    /** Any other ERC-20 token: the buyer signs a Permit2 transfer for our Collector. */
    kind: z.literal("permit2"),
    /**
     * How a buyer approves Permit2 for the token the first time: by a signed EIP-2612 permit (no gas for the buyer), or by an
     * approve transaction. `zeroAllowanceFirst` is for tokens that change an allowance only from zero, such as USDT on Ethereum; they
     * need two transactions.
     */
    allowance: z.discriminatedUnion("by", [
      z.strictObject({ by: z.literal("permit"), domain }),
      z.strictObject({ by: z.literal("approve"), zeroAllowanceFirst: z.boolean().default(false) }),
    ]),
    transferGas: transferGas(220_000),
  }),
  z.strictObject({
    ...everyToken,
    /** Any ERC-20 token: the buyer sends the transfer as their own transaction. */
    kind: z.literal("push"),
    transferGas: transferGas(130_000),
  }),
]);

const publicUrl = z.url({ protocol: /^https$/, normalize: true, error: "expected an https URL" });

/** What a wallet needs in order to add a network that it does not know (EIP-3085). It is public. */
const addEthereumChain = z.strictObject({
  /** Public endpoints; never the deployment's own, whose URLs may contain a secret. */
  rpc: z.array(publicUrl).min(1),
  explorer: publicUrl.optional(),
  /** The currency of gas; 18 decimals. */
  currency: z
    .strictObject({ name: z.string().min(1), symbol: z.string().regex(/^[A-Za-z0-9]{2,6}$/) })
    .default({ name: "Ether", symbol: "ETH" }),
});

const entry = z.strictObject({
  ...networkMembers,
  chain: z.templateLiteral(["eip155:", z.int().min(1)]),
  rpc: z.array(evmEndpoint).min(1),
  /** Usual time between blocks, milliseconds. */
  blockMs: z.number().int().min(10),
  /** When a block counts as confirmed: after this many blocks (1 = included), or by the chain's own tag. */
  finality: z.union([z.strictObject({ blocks: z.number().int().min(1) }), z.enum(["safe", "finalized"])]),
  /**
   * Most blocks whose logs one call asks for. Set it to what the endpoints allow (10 to 10,000, by provider and plan): a higher
   * value costs a few refused calls after each start, a lower one more calls after downtime.
   */
  logRange: z.number().int().min(1).max(100_000).default(500),
  multicall: evmAddress,
  /** Uniswap's Permit2, which has this address on nearly every chain. Only assets of kind permit2 need it. */
  permit2: evmAddress.default("0x000000000022D473030F116dDEE9F6B43aC78BA3"),
  /**
   * Factory contracts that may be called to deploy a payer's smart wallet before its payment (ERC-6492). The list is empty by
   * default, because the relayer pays the gas of these calls.
   */
  walletFactories: z.array(evmAddress).default([]),
  /** Gas limit of one transfer of a smart wallet, its deployment included. Such a transfer is never batched. */
  walletGas: z.number().int().min(100_000).max(5_000_000).default(1_000_000),
  /**
   * The next three members limit the gas of transactions that move no money, and what contract wallets take beyond their share. A
   * contract wallet can pass every simulation and still burn the whole gas limit of its transaction
   * (docs/decisions/contract-wallets.md). This one limits all contract
   * wallets of the chain together, per hour. Beyond it, transfers wait and new confirms are refused. Beyond the same gas of
   * transactions that payments share, payments get transactions of their own.
   */
  walletGasPerHour: z.number().int().min(0).default(10_000_000),
  /** The limit for contract wallets with the same code, per hour. */
  walletGasPerCode: z.number().int().min(0).default(5_000_000),
  /** The limit for one payer, a key or a contract, per day; beyond it the payer is barred for the rest of the day. */
  walletGasPerPayer: z.number().int().min(0).default(3_200_000),
  /** A contract that lists sanctioned accounts, with the interface of the Chainalysis oracle: `isSanctioned(address)`. */
  screening: z.strictObject({ oracle: evmAddress }).optional(),
  /**
   * How the chain charges for a transaction; compared with the chain at start. `legacy`: a gas price without EIP-1559.
   * `op-stack`: also an L1 data fee and an operator fee. `arbitrum`: also gas for the data on the parent chain.
   */
  feeModel: z.enum(["eip1559", "legacy", "op-stack", "arbitrum"]).default("eip1559"),
  fees: z.strictObject({
    /**
     * Most that any of our transactions offers per gas of its limit. What a rollup charges besides execution counts: a
     * transaction never offers more than its gas limit times this.
     */
    maxFeePerGas: wei,
    /** The tip. On a chain without EIP-1559, what is offered above the price that the node proposes. */
    priorityFeePerGas: wei,
    /**
     * Most that one transaction offers: its gas limit times its fee per gas. Nodes refuse more than a limit of their own
     * (`--rpc.txfeecap` of Geth and its forks, one native coin by default).
     */
    maxTransactionFee: wei.default(10n ** 18n),
  }),
  /** Gas limit of a batch; it holds as many transfers as fit. EIP-7825 allows a transaction no more than the maximum. */
  batchGas: z.number().int().min(200_000).max(16_777_216).default(8_000_000),
  /** Most unconfirmed nonces of a lane. */
  laneWindow: z.number().int().min(1).default(32),
  treasury: z.strictObject({ address: evmAddress, key: keySource }),
  /**
   * Relayer keys. With two or more, the last lane sends only for contract wallets, so that payers with plain keys never wait
   * for contract code. With one, transfers of contract wallets come last, one at a time.
   */
  lanes: z.array(z.strictObject({ address: evmAddress, key: keySource })).min(1),
  assets: z.array(evmAsset).min(1),
  /** When it is missing, buyers whose wallet does not know the network have to add it themselves. */
  addEthereumChain: addEthereumChain.optional(),
});

/**
 * The least tip that nodes of a chain accept, wei per gas. Polygon PoS and its test network: BorDefaultTxPoolPriceLimit,
 * https://github.com/0xPolygon/bor/blob/HEAD/params/protocol_params.go.
 */
const leastTips: Readonly<Record<string, bigint>> = { "eip155:137": 25_000_000_000n, "eip155:80002": 25_000_000_000n };

/** Returns what is wrong with a chain's fees, or undefined. */
function validateFees({ chain, fees }: z.infer<typeof entry>): string | undefined {
  const least = leastTips[chain] ?? 0n;
  if (fees.priorityFeePerGas < least) return `priorityFeePerGas is below ${least} wei, the least that nodes accept`;
  if (fees.priorityFeePerGas > fees.maxFeePerGas)
    return "priorityFeePerGas is above maxFeePerGas, so nothing could be sent";
  return undefined;
}

/** The entry of an EVM chain. */
export const evmNetwork = entry.superRefine((network, context) => {
  const { rpc, addEthereumChain } = network;
  const message = validateFees(network);
  if (message !== undefined) context.addIssue({ code: "custom", path: ["fees"], message });
  const own = new Set(rpc.map(({ url }) => URL.parse(url)?.href));
  for (const [index, url] of addEthereumChain?.rpc.entries() ?? [])
    if (own.has(url))
      context.addIssue({
        code: "custom",
        path: ["addEthereumChain", "rpc", index],
        message: "is also listed in rpc: the deployment's own endpoints must not be shown to buyers",
      });
});

export type EvmNetwork = Readonly<z.infer<typeof evmNetwork>>;
export type EvmAsset = EvmNetwork["assets"][number];
