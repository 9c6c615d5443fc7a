/**
 * The file that holds what this release serves. `npm run pages:release` writes it, the check of released pages reads
 * it.
 */
export const releaseFile = new URL("release.json", import.meta.url);
