/** Age after which a request is not carried out any more, milliseconds: its operator does not expect it then. */
const LONGEST_WAIT_MS = 10 * 60_000;

/** Returns true for a request that no worker carries out any more. */
export function isExpired({ requested_at }: { requested_at: Date }, now: Date): boolean {
  return now.getTime() - requested_at.getTime() > LONGEST_WAIT_MS;
}
