/** Another process can take over the watch when its owner has not renewed the lease for this long, milliseconds. */
export const WATCH_LEASE_MS = 5_000;
/** Interval at which the owner renews the lease, milliseconds. */
export const WATCH_RENEW_MS = 1_500;
