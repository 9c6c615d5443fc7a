import { flushCompileCache } from "node:module";

/** How long a process takes to start; functions that it has compiled by then are in the cache too. */
const STARTED_MS = 2_000;

// Preloaded by `node --import`: Node writes its compile cache when a process exits, but tests end most processes by SIGKILL.
setTimeout(flushCompileCache, STARTED_MS).unref();
