import { containsCidr } from "../../runtime/cidrs.ts";
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
