import { expect, test } from "vitest";
import { checkChain } from "../../../chains/open-chains.ts";
import { fundBuyer, keysOf, networksFileFor, startChain } from "../../support/evm-chain.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { makeMerchantFixture } from "../../support/merchant-fixture.ts";
import { redisPrefix } from "../../support/redis-prefix.ts";
import { spawnUnready } from "../../support/spawn-process.ts";
import { createDatabase } from "../../support/test-database.ts";
import { testKeys } from "../../support/test-deps.ts";

const chain = await startChain();
const otherChain = await startChain({ chainId: 31_338 });

test.each(["worker", "api"] as const)(
  "a second endpoint that serves another chain keeps the %s from starting, and is named without its URL",
  async (role) => {
    const redis = redisPrefix();
    const started = await spawnUnready({
      role,
      env: {
        DATABASE_URL: await createDatabase(),
        REDIS_URL: redis.url,
        REDIS_PREFIX: redis.prefix,
        NETWORKS_FILE: await networksFileFor(chain, { rpcUrls: [chain.url, otherChain.url] }),
        PUBLIC_URL: "http://127.0.0.1:8080",
        ...testKeys,
        SIGNER: "embedded",
        ...(role === "worker" ? keysOf(chain, {}) : {}),
      },
    });
    expect(await started.gone).toMatchObject({ code: 1 });
    expect(started.tail()).toContain("endpoint local-1 of Local serves chain id 31338");
    expect(started.tail()).not.toContain(otherChain.url);
  },
);

test("an endpoint that is unavailable at the start and returns as another chain is skipped, and no payment fails", async () => {
  const [away, otherChainProxy] = await Promise.all([
    startFaultProxy({ target: chain.url }),
    startFaultProxy({ target: otherChain.url }),
  ]);
  otherChainProxy.refuse(true);
  const fixture = await makeMerchantFixture(chain, { rpcUrls: [away.url, otherChainProxy.url, chain.url] });
  await checkChain(fixture.deps.chains, chain.id);
  otherChainProxy.refuse(false);
  away.refuse(true);
  const paymentId = await fixture.pay(await fundBuyer(chain));
  expect(await fixture.status(paymentId)).toMatchObject({ state: "succeeded" });
  expect(Object.keys(otherChainProxy.calls), "only its chain id is read").toEqual(["eth_chainId"]);
});
