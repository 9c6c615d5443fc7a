import { canonicalCidr, containsCidr } from "../../runtime/cidrs.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { Scope } from "./scopes.ts";

/** What an API key may do, for which merchants, from which addresses and until when. */
export type KeyLimits = {
  scopes: readonly Scope[];
  /** The only merchants that the key reaches; null: all of its account and mode, also later ones. */
  onlyMerchants: readonly string[] | null;
  /** Canonical ranges of addresses; null: any address. */
  allowedCidrs: readonly string[] | null;
  /** The first moment at which the key no longer works; null: none. */
  expiresAt: Date | null;
};

/** The limits of a new key. Undefined: the limit of the key that creates it. */
export type WantedLimits = Pick<KeyLimits, "scopes"> & {
  [Limit in Exclude<keyof KeyLimits, "scopes">]?: KeyLimits[Limit] | undefined;
};

/**
 * Returns the first limit of `own` that `other` exceeds, as an API error message; undefined when a key with the limits
 * `other` can do nothing that a key with the limits `own` cannot do.
 */
export function findExcess(own: KeyLimits, other: KeyLimits): string | undefined {
  const scope = other.scopes.find((one) => !own.scopes.includes(one));
  if (scope) return `scopes: your key lacks the scope ${scope}`;
  if (own.onlyMerchants && !other.onlyMerchants?.every((id) => own.onlyMerchants?.includes(id)))
    return "merchantIds: your key is restricted to fewer merchants";
  if (own.allowedCidrs && !other.allowedCidrs?.every((cidr) => isWithin(own.allowedCidrs ?? [], cidr)))
    return "allowedCidrs: your key is restricted to fewer addresses";
  if (own.expiresAt && (!other.expiresAt || other.expiresAt > own.expiresAt))
    return `expiresAt: your key expires at ${own.expiresAt.toISOString()}`;
  return undefined;
}

const isWithin = (cidrs: readonly string[], cidr: string) => cidrs.some((outer) => containsCidr(outer, cidr));

/**
 * Returns the limits of a new key, its address ranges in their canonical form. Refuses invalid ones with
 * `params_validation`.
 * @param own the limits of the key that creates it; they apply where `given` leaves a limit out
 */
export function readLimits(
  { now }: { now: () => Date },
  given: WantedLimits,
  own: KeyLimits | undefined,
): Result<KeyLimits> {
  const { onlyMerchants = own?.onlyMerchants ?? null, expiresAt = own?.expiresAt ?? null } = given;
  const { allowedCidrs: ranges = own?.allowedCidrs ?? null } = given;
  if (given.scopes.length === 0) return refuse("params_validation", "scopes: expected at least one scope");
  if (onlyMerchants?.length === 0) return refuse("params_validation", "merchantIds: expected at least one merchant");
  if (ranges?.length === 0) return refuse("params_validation", "allowedCidrs: expected at least one range");
  if (expiresAt && expiresAt <= now()) return refuse("params_validation", "expiresAt: is not in the future");
  const canonical = ranges?.map(canonicalCidr) ?? [];
  const invalid = canonical.indexOf(undefined);
  if (invalid >= 0)
    return refuse(
      "params_validation",
      `allowedCidrs.${invalid}: expected a range such as 192.0.2.0/24 or 2001:db8::/32`,
    );
  return done({
    scopes: [...new Set(given.scopes)],
    onlyMerchants: onlyMerchants && [...new Set(onlyMerchants)],
    allowedCidrs: ranges && [...new Set(canonical.filter((cidr) => cidr !== undefined))],
    expiresAt,
  });
}
