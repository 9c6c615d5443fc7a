import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { type ParseError, parse, printParseErrorCode } from "jsonc-parser";
import { z } from "zod";
import { canonicalAsset } from "../chains/canonical-ids.ts";
import { getChainDriver } from "../chains/find-chain-driver.ts";
import { assetPattern } from "../runtime/caip-patterns.ts";
import { describeIssues } from "../runtime/config.ts";
import type { Log } from "../runtime/log.ts";
import { errorCode } from "../runtime/redaction.ts";

/** Minor units, as a string. */
const amount = z
  .string()
  .regex(/^\d{1,77}$/, "expected a whole number of minor units, as a string")
  .transform(BigInt);

/** What the treasury keeps of an asset. */
const hotBalance = z
  .strictObject({
    /** Below this an alert fires. */
    floor: amount,
    /** Above this the excess moves to the cold address; without one an alert fires. */
    ceiling: amount,
    /** Where the excess moves, and what the treasury keeps then. On Solana, the owner of the token account that receives it. */
    cold: z.strictObject({ address: z.string(), target: amount }).optional(),
  })
  .refine(
    ({ floor, ceiling, cold: { target } = { target: floor } }) => floor <= target && target <= ceiling,
    "expected floor <= target <= ceiling",
  );
export type HotBalance = z.infer<typeof hotBalance>;

/** The limit of all new merchants together is this many times that of one, if the file does not name it. */
const NEW_MERCHANTS = 10n;

const assetLimits = z
  .strictObject({
    /** Most of one payout. */
    perPayout: amount,
    /** Most that one merchant is paid within 24 hours, refunds included. */
    perMerchantDay: amount,
    /** The same for a merchant whose first destination or first deposit is younger than the waiting period. */
    newMerchantPerDay: amount,
    /** Most that all such merchants together are paid within 24 hours. */
    newMerchantsPerDay: amount.optional(),
    /** Most that leaves the treasury within one hour. */
    perHour: amount,
    hotBalance: hotBalance.optional(),
  })
  .transform((limits) => ({
    ...limits,
    newMerchantsPerDay: limits.newMerchantsPerDay ?? limits.newMerchantPerDay * NEW_MERCHANTS,
  }));
export type AssetLimits = z.infer<typeof assetLimits>;

function isColdAddress(asset: string, { cold }: HotBalance = { floor: 0n, ceiling: 0n }): boolean {
  return cold === undefined || getChainDriver(asset).validateAddress(cold.address) === undefined;
}

/** The signer's file of limits. Only its operator can change it; a file that is missing or invalid stops all payouts. */
const limitsSchema = z.strictObject({
  paused: z.boolean(),
  /** How long a changed destination waits before it applies, unless it is approved earlier. */
  destinationWaitingHours: z.number().min(0).max(8_760).default(72),
  /** By asset (CAIP-19). The signer pays no asset that is missing here. */
  assets: z
    .record(z.string().regex(assetPattern).transform(canonicalAsset), assetLimits)
    .refine(
      (assets) => Object.entries(assets).every(([asset, { hotBalance }]) => isColdAddress(asset, hotBalance)),
      "a cold address is no address of its asset's chain",
    ),
  /** Who can approve what needs two operators. `publicKey` is an Ed25519 key, 32 bytes in hex. */
  operators: z
    .array(z.strictObject({ name: z.string().regex(/^[\w.@-]{1,64}$/), publicKey: z.string().regex(/^[0-9a-f]{64}$/) }))
    .default([]),
});
export type Limits = Readonly<z.infer<typeof limitsSchema>>;

/** The limits file as it was read last; `sha256` is that of its text, null while it cannot be read. */
export type LimitsState = { sha256: string | null; state: "valid" | "paused" | "unusable" };

/**
 * Opens the limits file. The returned function reads it again each time and returns undefined while it is missing or invalid.
 * It logs each change.
 * @param deps.observe receives the state of the file before each result is used
 */
export function openLimits(
  file: string,
  { log, observe }: { log: Pick<Log, "info" | "error">; observe: (state: LimitsState) => void },
): () => Limits | undefined {
  let text: string | undefined;
  let sha256: string | null = null;
  let error: string | undefined;
  let limits: Limits | undefined;
  const set = (next: { limits: Limits } | { error: string }) => {
    if ("limits" in next) {
      limits = next.limits;
      error = undefined;
      log.info({ file, paused: limits.paused, assets: Object.keys(limits.assets).length }, "limits file was read");
      return;
    }
    limits = undefined;
    if (error !== next.error) log.error({ file, error: next.error }, "limits file is not usable: nothing is signed");
    error = next.error;
  };
  return () => {
    try {
      const found = readFileSync(file, "utf8");
      if (found !== text || error !== undefined) set(parseLimits(found));
      if (found !== text) sha256 = createHash("sha256").update(found).digest("hex");
      text = found;
    } catch (cause) {
      [text, sha256] = [undefined, null];
      set({ error: `the file cannot be read (${errorCode(cause) ?? "unknown"})` });
    }
    observe({ sha256, state: limits === undefined ? "unusable" : limits.paused ? "paused" : "valid" });
    return limits;
  };
}

/** Parses a limits file (JSON with comments and trailing commas). Returns what is wrong with it, without its values. */
export function parseLimits(text: string): { limits: Limits } | { error: string } {
  const errors: ParseError[] = [];
  const document: unknown = parse(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first) return { error: `the file is not JSON (${printParseErrorCode(first.error)} at ${first.offset})` };
  const parsed = limitsSchema.safeParse(document, { reportInput: false });
  return parsed.success ? { limits: parsed.data } : { error: describeIssues("the file", parsed.error) };
}
