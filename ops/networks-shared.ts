import { z } from "zod";

/** Where a secret comes from: the name of an environment variable, or a file. */
export const secretSource = z.union([
  z.strictObject({ env: z.string().min(1) }),
  z.strictObject({ file: z.string().min(1) }),
]);
export type SecretSource = z.infer<typeof secretSource>;

/** What every chain's entry of the networks file begins with. */
export const everyNetwork = {
  name: z.string().min(1),
  iconUrl: z.url().optional(),
  rpcTimeoutMs: z.number().int().min(100).default(10_000),
  /** How often the watcher asks for a new head, milliseconds. */
  pollMs: z.number().int().min(10),
  /**
   * How old the newest block of the chain may be, milliseconds. With an older one, or one as far in the future, its watcher
   * does not count as caught up: nothing is paid out and no payment expires. Unset: a minute, or ten block times if that is
   * longer. Null only for networks that make blocks on demand, such as a local Anvil.
   */
  maxHeadAgeMs: z.number().int().min(1_000).nullable().optional(),
};

/** Tried in this order. The name is what metrics and logs show; the URL may hold a secret. */
export const rpcEndpoint = z.strictObject({ name: z.string().regex(/^[a-z0-9-]+$/), url: z.url() });

/** What every asset's entry has, on whichever chain. */
export const everyAsset = {
  symbol: z.string().min(1),
  name: z.string().min(1),
  decimals: z.number().int().min(0).max(36),
  /** Currency it stands for at 1:1, for example iso4217/USD. */
  peg: z.string().regex(/^iso4217\/[A-Z]{3}$/),
  iconUrl: z.url().optional(),
  /**
   * Minor units, as a string. Deposits into the treasury that are smaller and belong to no payment are booked together,
   * as one exception a day: anybody can make thousands of them for a few cents. 0 books each by itself.
   */
  dust: z
    .string()
    .regex(/^\d{1,77}$/, "expected a whole number of minor units, as a string")
    .default("0"),
  /**
   * Minor units, as a string. A movement of this much or more is booked only when two endpoints agree that it is final, and
   * waits until they do. Unset: 10,000 whole units where the chain has two endpoints, and nothing where it has one. Null
   * believes whichever endpoints answer, whatever the amount. Needs two endpoints.
   */
  agreeFrom: z
    .string()
    .regex(/^\d{1,77}$/, "expected a whole number of minor units, as a string")
    .nullable()
    .optional(),
};
