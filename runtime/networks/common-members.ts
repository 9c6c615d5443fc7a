import { z } from "zod";

/** Where to find a secret: the name of an environment variable, or a file. */
const secretSource = z.union([z.strictObject({ env: z.string().min(1) }), z.strictObject({ file: z.string().min(1) })]);
export type SecretSource = z.infer<typeof secretSource>;

/** What an invalid `key` reports. It does not show the value, which may be the key itself. */
const KEY_PLACES =
  'expected where the key is, never the key itself: {"env"}, {"file"}, {"keystore", "password"}, {"awsKms"} or {"googleKms"}';

/** Where to find a private key. The networks file never contains the key itself. */
const keyPlaces = [
  secretSource,
  /** An encrypted file (Web3 Secret Storage, version 3), and where to find its password. */
  z.strictObject({ keystore: z.string().min(1), password: secretSource }),
  /** A key in AWS KMS: an id, an ARN or an alias. Credentials come from the usual places of AWS. */
  z.strictObject({
    awsKms: z.strictObject({ keyId: z.string().min(1), region: z.string().min(1), endpoint: z.url().optional() }),
  }),
  /** A key in Google Cloud KMS: the full name of a key version. Credentials come from the usual places of Google Cloud. */
  z.strictObject({
    googleKms: z.strictObject({
      name: z.string().regex(/^projects\/.+\/cryptoKeyVersions\/\d+$/),
      endpoint: z.url().optional(),
    }),
  }),
] as const;
export const keySource = z.union(keyPlaces, KEY_PLACES);
export type KeySource = z.infer<typeof keySource>;

/** Members that the entry of every chain has. */
export const networkMembers = {
  name: z.string().min(1),
  iconUrl: z.url().optional(),
  rpcTimeoutMs: z.number().int().min(100).default(10_000),
  /** How often the watcher polls for a new head, milliseconds. */
  pollMs: z.number().int().min(10),
  /**
   * Maximum age of the chain's newest block, milliseconds. While the newest block is older, or that far in the future, the
   * watcher is not caught up: nothing is paid out and no payment expires. Unset: one minute, or ten block times if that is
   * longer. Null only for networks that make blocks on demand, such as a local Anvil.
   */
  maxHeadAgeMs: z.number().int().min(1_000).nullable().optional(),
};

/** Endpoints are tried in the order of the list. Metrics and logs show the name; the URL may contain a secret. */
export const rpcEndpoint = z.strictObject({
  name: z.string().regex(/^[a-z0-9-]+$/),
  url: z.url(),
  /**
   * Most calls per minute that one process makes to this endpoint. Calls that move or confirm money wait for it, and options
   * are refused for a moment. Unset: no limit of our own. docs/operations.md shows how to choose it.
   */
  callsPerMinute: z.number().int().min(30).optional(),
});

/** Members that the entry of every asset has. */
export const assetMembers = {
  symbol: z.string().min(1),
  name: z.string().min(1),
  decimals: z.number().int().min(0).max(36),
  /** Currency that the asset is worth 1:1, for example iso4217/USD. */
  peg: z.string().regex(/^iso4217\/[A-Z]{3}$/),
  iconUrl: z.url().optional(),
  /**
   * Minor units, as a string. Smaller deposits into the treasury that belong to no payment are booked together, as one
   * exception per day, because a stranger can make thousands of them for a few cents. 0 books each deposit by itself.
   * A merchant refunds no smaller part of a payment either.
   */
  dust: z
    .string()
    .regex(/^\d{1,77}$/, "expected a whole number of minor units, as a string")
    .default("0"),
  /**
   * Minor units, as a string. A movement of this amount or more is booked only when two endpoints agree that it is final.
   * Requires two endpoints. Unset: 10,000 whole units when the chain has two endpoints, no such check when it has one. Null
   * disables the check.
   */
  agreementThreshold: z
    .string()
    .regex(/^\d{1,77}$/, "expected a whole number of minor units, as a string")
    .nullable()
    .optional(),
};
