import { z } from "zod";
import { solanaAddressPattern, solanaAssetPattern, solanaReferencePattern } from "./caip-patterns.ts";
import { everyAsset, everyNetwork, rpcEndpoint, secretSource } from "./networks-shared.ts";

/** Base58 of 32 bytes. */
const address = z.string().regex(solanaAddressPattern, "expected a base58 address");
const lamports = z.string().regex(/^\d+$/, "expected a whole number of lamports, as a string").transform(BigInt);
/** The secret is 64 bytes in base58, or the numbers of a keypair file of the Solana tools. */
const account = z.strictObject({ address, key: secretSource });

const solanaAsset = z.strictObject({
  ...everyAsset,
  /** CAIP-19, for example solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp/token:EPjFWdd5…; case counts. */
  asset: z.string().regex(solanaAssetPattern),
  /** Paid by a transaction that the buyer signs and our relayer pays for. */
  kind: z.literal("spl").default("spl"),
  /** The program that the mint belongs to; compared with the chain at start. */
  program: z.enum(["token", "token-2022"]).default("token"),
});

/** A Solana cluster's entry. */
export const solanaNetwork = z.strictObject({
  ...everyNetwork,
  /** The first 32 characters of the genesis hash (CAIP-30). */
  chain: z.templateLiteral(["solana:", z.string().regex(solanaReferencePattern)]),
  /** At least two: a transaction is called dead only when two endpoints say that they have never seen it. */
  rpc: z.array(rpcEndpoint).min(2),
  /** Usual time between slots, milliseconds. */
  slotMs: z.number().int().min(10).default(400),
  /** When what was seen counts as confirmed. */
  finality: z.enum(["confirmed", "finalized"]),
  /** No transaction of ours offers more than this for its priority, lamports; nor is one signed that does. */
  maxPriorityFee: lamports,
  /** Durable nonce accounts, and so the payouts' transactions that can be on their way at once. */
  nonceAccounts: z.number().int().min(1).max(64).default(8),
  /**
   * Transactions of the treasury's history that are read in a second at most, by each asset's one reader: strangers
   * decide how many there are. More than this wait, oldest first.
   */
  historyReadsPerSecond: z.number().int().min(1).max(10_000).default(100),
  /**
   * How long the marker of a payout stays, days, until its rent is taken back: longer than the oldest backup is that the
   * database would be restored from. While it is there the cluster itself refuses a second payout.
   */
  payoutMarkerDays: z.number().min(1).max(3_650).default(30),
  treasury: account,
  /** Relayers: each pays the fees of its transactions. The first one also pays for accounts. */
  lanes: z.array(account).min(1),
  assets: z.array(solanaAsset).min(1),
});

export type SolanaNetwork = Readonly<z.infer<typeof solanaNetwork>>;
export type SolanaAsset = SolanaNetwork["assets"][number];
