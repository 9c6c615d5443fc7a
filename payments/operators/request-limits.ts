/** Age after which a request is not carried out any more, milliseconds: its operator does not expect it then. */
const LONGEST_WAIT_MS = 10 * 60_000;

/** Requests of one operator that are carried out within an hour. An operator at work makes fewer; a script makes more. */
export const MOST_PER_HOUR = 60;
export const HOUR_MS = 60 * 60_000;

/** Returns true for a request that no worker carries out any more. */
export function isExpired({ requested_at }: { requested_at: Date }, now: Date): boolean {
  return now.getTime() - requested_at.getTime() > LONGEST_WAIT_MS;
}
