import type { FastifyReply } from "fastify";
import { Redis } from "ioredis";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { createLimits, MOST_CALLERS } from "../../../../api/http/rate-limits.ts";
import { createMetrics } from "../../../../runtime/metrics.ts";

test("a process forgets the caller who was silent for longest when it counts too many, and still refuses one who goes on", async () => {
  // The connection is never opened: the process counts by itself, as while Redis is down.
  const redis = new Redis({ lazyConnect: true, enableOfflineQueue: false });
  const metrics = createMetrics(new Registry(), "api");
  const settings = { perAddress: 2, perKey: 0, perPayment: 0 };
  const { address } = createLimits({ redis, prefix: "test", metrics, now: () => new Date(0) }, settings);
  const reply = { headers: () => undefined, header: () => undefined } as unknown as FastifyReply;
  const isRefused = async (key: string) => (await address(key, reply)) !== undefined;
  for (const caller of ["silent", "persistent"])
    expect([await isRefused(caller), await isRefused(caller), await isRefused(caller)]).toEqual([false, false, true]);
  for (let index = 0; index < MOST_CALLERS - 2; index += 1) await address(`other ${index}`, reply);
  expect(await isRefused("persistent")).toBe(true);
  expect(await isRefused("silent"), "as many callers as a process counts").toBe(true);

  for (let index = 0; index < MOST_CALLERS; index += 1) {
    if (index % 1_000 === 0) expect(await isRefused("persistent")).toBe(true);
    await address(`another ${index}`, reply);
  }
  expect(await isRefused("persistent")).toBe(true);
  expect(await isRefused("silent"), "forgotten").toBe(false);
  redis.disconnect();
});
