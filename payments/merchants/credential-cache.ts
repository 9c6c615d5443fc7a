import { findApiKeyByHash } from "../../db/queries/api-keys.ts";
import { findLiveAppId } from "../../db/queries/app-ids.ts";
import { keepBriefly } from "../../runtime/keep-briefly.ts";

/**
 * How long a key or an app id is used after it was read, milliseconds. A revocation counts within a second in every
 * process, whatever messages are lost, because it depends on this age only.
 */
const MAX_AGE_MS = 800;
/** Rows of each kind that are kept at most. */
const MOST = 10_000;

/** Reads the API keys and app ids of requests, and keeps them for less than a second. */
export type CredentialCache = {
  findApiKeyByHash: typeof findApiKeyByHash;
  findLiveAppId: typeof findLiveAppId;
  /** Drops everything, so that a change by this process counts at once in it. */
  forget(): void;
};

/** Returns an empty cache. */
export function createCredentialCache(): CredentialCache {
  const options = { maxAgeMs: MAX_AGE_MS, most: MOST, monotonic: () => performance.now() };
  const keys = keepBriefly(findApiKeyByHash, { ...options, nameOf: (hash) => hash.toString("latin1") });
  const apps = keepBriefly(findLiveAppId, { ...options, nameOf: (id) => id });
  return {
    findApiKeyByHash: keys.read,
    findLiveAppId: apps.read,
    forget() {
      keys.forget();
      apps.forget();
    },
  };
}
