import { z } from "zod";
import { solanaAddressPattern, solanaAssetPattern, solanaReferencePattern } from "../caip-patterns.ts";
import { assetMembers, keySource, networkMembers, rpcEndpoint } from "./common-members.ts";

/** Base58 of 32 bytes. */
const address = z.string().regex(solanaAddressPattern, "expected a base58 address");
const lamports = z.string().regex(/^\d+$/, "expected a whole number of lamports, as a string").transform(BigInt);
/** A plain key is 64 bytes in base58, or the content of a keypair file of the Solana tools. */
const account = z.strictObject({ address, key: keySource });

const solanaAsset = z.strictObject({
  ...assetMembers,
  /** CAIP-19, for example solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp/token:EPjFWdd5…; case-sensitive. */
  asset: z.string().regex(solanaAssetPattern),
  /** The buyer signs a transaction, and our relayer pays its fee. */
  kind: z.literal("spl").default("spl"),
  /** The program that owns the mint; compared with the chain at start. */
  program: z.enum(["token", "token-2022"]).default("token"),
});

/** The entry of a Solana cluster. */
export const solanaNetwork = z.strictObject({
  ...networkMembers,
  /** The first 32 characters of the genesis hash (CAIP-30). */
  chain: z.templateLiteral(["solana:", z.string().regex(solanaReferencePattern)]),
  /** At least two: a transaction counts as dead only when two endpoints report that they do not know it. */
  rpc: z.array(rpcEndpoint).min(2),
  /** Usual time between slots, milliseconds. */
  slotMs: z.number().int().min(10).default(400),
  /** The commitment at which a transaction counts as confirmed. */
  finality: z.enum(["confirmed", "finalized"]),
  /**
   * Most that a transaction of ours offers as a priority fee, lamports. It makes one payment, or several payouts. A buyer's
   * transaction that offers more is not signed.
   */
  maxPriorityFee: lamports,
  /**
   * Least that a transaction of ours offers as a priority fee, lamports, but never more than `maxPriorityFee`. Endpoints report what
   * the cheapest transactions with our accounts have paid, which is what we have offered.
   */
  minPriorityFee: lamports.prefault("2000"),
  /** Number of durable nonce accounts, which is the number of payout transactions that can be in flight at once. */
  nonceAccounts: z.number().int().min(1).max(64).default(8),
  /**
   * Most transactions of the treasury's history that are read per second, for each asset. Strangers can create any number of
   * them; the surplus waits, oldest first.
   */
  historyReadsPerSecond: z.number().int().min(1).max(10_000).default(100),
  /**
   * How long the marker account of a payout is kept, days, before its rent is reclaimed. Set it longer than the age of the
   * oldest backup that the database would be restored from: while the marker exists, the cluster refuses a second payout.
   */
  payoutMarkerDays: z.number().min(1).max(3_650).default(30),
  treasury: account,
  /** Relayers; each pays the fees of its transactions. The first one also pays the rent of new accounts. */
  lanes: z.array(account).min(1),
  assets: z.array(solanaAsset).min(1),
});

export type SolanaNetwork = Readonly<z.infer<typeof solanaNetwork>>;
export type SolanaAsset = SolanaNetwork["assets"][number];
