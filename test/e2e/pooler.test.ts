import pRetry from "p-retry";
import { expect, test } from "vitest";
import { type Buyer, createPayment, listOptions, Refused, signOption } from "../../local/buyer-client.ts";
import { fundBuyers, startChain } from "../support/evm-chain.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { expectSound, waitUntilIdle } from "../support/fleet-invariants.ts";
import { findPgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { confirmUntilFinal, type SignedPayment } from "../support/sign-payments.ts";
import { createDatabase } from "../support/test-database.ts";

// It needs PgBouncer: Debian's package, as .ci/run installs it, or the program that PGBOUNCER names.
const PER_BUYER = 5;

/** Repeats a request after a 503, as callers do. */
const repeat = <T>(request: () => Promise<T>) =>
  pRetry(request, {
    retries: 20,
    minTimeout: 50,
    maxTimeout: 200,
    shouldRetry: ({ error }) => error instanceof Refused && error.status === 503,
  });

async function signPayment({ shop }: Fleet, chain: string, buyer: Buyer): Promise<SignedPayment> {
  const expiresAt = new Date(Date.now() + 600_000);
  const paymentId = await repeat(() => createPayment(shop, { referenceId: "pooled", cents: "100", expiresAt }));
  const [option] = await repeat(() => listOptions(shop, paymentId, [`${chain}:${buyer.address}`]));
  if (!option) throw new Error(`payment ${paymentId} has no option`);
  return { paymentId, optionId: option.id, results: await repeat(() => signOption(shop, paymentId, option, buyer)) };
}

test.skipIf(findPgBouncer() === undefined)(
  "a fleet behind PgBouncer in transaction mode pays, and prepares statements unless PgBouncer is too old for them",
  async () => {
    const chain = await startChain();
    const databaseUrl = await createDatabase();
    const pooler = await startPgBouncer(databaseUrl);
    const fleet = await startFleet({ chain, databaseUrl, env: { DATABASE_URL: pooler.url } });
    const payEach = async (buyer: Buyer) => {
      for (let count = 0; count < PER_BUYER; count += 1) {
        const end = await confirmUntilFinal(fleet.shop, await signPayment(fleet, chain.id, buyer));
        expect(end.status).toBe("succeeded");
      }
    };
    await Promise.all((await fundBuyers(chain, 4)).map(payEach));
    await waitUntilIdle(fleet);
    await expectSound(fleet, chain, { succeeded: 4 * PER_BUYER });

    const isStop = ({ msg }: { msg?: unknown }) => String(msg).startsWith("the pooler does not pass prepared");
    const stops = [...fleet.apis, ...fleet.workers].map(({ records }) => records().filter(isStop).length);
    // Behind an old PgBouncer each process stops once, after its first failed statement; some may meet none.
    expect(Math.max(...stops), "how often a process stops preparing").toBe(pooler.passesPrepared ? 0 : 1);
  },
);
