import { expect, test } from "vitest";
import type { Buyer } from "../../local/buyer-client.ts";
import { fundBuyers, startChain } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { expectSound, waitUntilIdle } from "../support/fleet-invariants.ts";
import { findPgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { confirmUntilFinal, signPayment } from "../support/sign-payments.ts";
import { createDatabase } from "../support/test-database.ts";

// It needs PgBouncer: Debian's package, as .ci/run installs it, or the program that PGBOUNCER names.
const PER_BUYER = 5;

test.skipIf(findPgBouncer() === undefined)(
  "a fleet behind PgBouncer in transaction mode pays, and prepares statements unless PgBouncer is too old for them",
  async () => {
    const chain = await startChain();
    const databaseUrl = await createDatabase();
    const pooler = await startPgBouncer(databaseUrl);
    const fleet = await startFleet({ chain, databaseUrl, env: { DATABASE_URL: pooler.url } });
    const payEach = async (buyer: Buyer) => {
      for (let count = 0; count < PER_BUYER; count += 1) {
        const end = await confirmUntilFinal(fleet.shop, await signPayment(fleet.shop, chain, buyer));
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
