/** A watch is somebody else's when its owner has not been heard of for this long, milliseconds. */
export const WATCH_LEASE_MS = 5_000;
/** How often its owner says that it is still there, milliseconds. */
export const WATCH_RENEW_MS = 1_500;
