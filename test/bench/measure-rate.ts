import { percentile, runPool } from "./bench-stats.ts";

/** Payments per second, and how long each took, milliseconds. */
export type Rate = { paid: number; failed: string[]; perSecond: number; p50: number; p95: number };

/** Calls `pay` for each item with the given concurrency. An item whose call returns false or throws was not paid. */
export async function measureRate<I>(
  items: readonly I[],
  concurrency: number,
  pay: (item: I, index: number) => Promise<boolean>,
): Promise<Rate> {
  const failed: string[] = [];
  const times: number[] = [];
  const begun = performance.now();
  await runPool(items, concurrency, async (item, index) => {
    const sent = performance.now();
    try {
      if (await pay(item, index)) times.push(performance.now() - sent);
      else failed.push("refused");
    } catch (error) {
      failed.push(error instanceof Error ? error.message : String(error));
    }
  });
  const perSecond = times.length / ((performance.now() - begun) / 1_000);
  return { paid: times.length, failed, perSecond, p50: percentile(times, 0.5), p95: percentile(times, 0.95) };
}
