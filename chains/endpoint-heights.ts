/** An endpoint lags when it is this many blocks behind the highest one, and this many milliseconds of blocks. */
const MAX_BEHIND_BLOCKS = 10;
const MAX_BEHIND_MS = 30_000;

/** Returns how many blocks an endpoint may be behind the highest one before it lags. `blockMs` is the time between blocks. */
export function maxBehind(blockMs: number): number {
  return Math.max(MAX_BEHIND_BLOCKS, Math.ceil(MAX_BEHIND_MS / blockMs));
}

/** Returns by how many blocks each endpoint is behind the highest one. Endpoints without a height are left out. */
export function listBehind(heights: ReadonlyMap<string, number>): Map<string, number> {
  const highest = Math.max(...heights.values());
  return new Map([...heights].map(([name, height]) => [name, highest - height]));
}
