import { done, type Result, refuse } from "../../payments/error-codes.ts";
import { versions } from "../../payments/merchants/pin-version.ts";

/** A date with an optional `.preview`. */
const pattern = /^(\d{4}-\d{2}-\d{2})(\.preview)?$/;

/**
 * Returns the version of the contract for a call (specification, part 9): the one in `Svc-Version`, else the account's
 * pinned version. The header may only name a later version than the pinned one; a preview must be named explicitly.
 * Refuses with `invalid_api_version`, `unknown_api_version` and `api_version_downgrade`.
 */
export function pickVersion(header: string | undefined, pinned: string): Result<string> {
  if (header === undefined || header === "") return done(pinned);
  const [, date] = pattern.exec(header) ?? [];
  if (!date || !isDate(date))
    return refuse("invalid_api_version", "Svc-Version: expected a date such as 2026-02-18, optionally with .preview");
  if (!versions.some((version) => version === header))
    return refuse("unknown_api_version", `Svc-Version: expected one of ${versions.join(", ")}`);
  if (date < pinned.slice(0, 10))
    return refuse(
      "api_version_downgrade",
      `Svc-Version: the account is pinned to ${pinned}, and earlier versions are not allowed`,
    );
  return done(header);
}

function isDate(text: string): boolean {
  const at = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text);
}
