import { done, type Result, refuse } from "../payments/errors.ts";
import { versions } from "../payments/versions.ts";

/** A date, and perhaps that it is a preview. */
const pattern = /^(\d{4}-\d{2}-\d{2})(\.preview)?$/;

/**
 * Which version of the contract a call is answered in (specification, part 9): the one in `Svc-Version`, else the one
 * that the account is pinned to. The header may only lead forward; a preview is had by naming it.
 * Refuses with `invalid_api_version`, `unknown_api_version` and `api_version_downgrade`.
 */
export function pickVersion(header: string | undefined, pinned: string): Result<string> {
  if (header === undefined || header === "") return done(pinned);
  const [, date] = pattern.exec(header) ?? [];
  if (!date || !isDate(date))
    return refuse("invalid_api_version", "Svc-Version: expected a date such as 2026-02-18, perhaps with .preview");
  if (!versions.some((version) => version === header))
    return refuse("unknown_api_version", `Svc-Version: expected one of ${versions.join(", ")}`);
  if (date < pinned.slice(0, 10))
    return refuse("api_version_downgrade", `Svc-Version: the account is at ${pinned} and does not go back`);
  return done(header);
}

function isDate(text: string): boolean {
  const at = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text);
}
