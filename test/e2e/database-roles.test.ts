import { expect, test } from "vitest";
import { ask, createPayment, pay, waitFinal } from "../../local/buyer-client.ts";
import { adminIn } from "../support/admin.ts";
import { fundBuyer, startChain, usdcBalance } from "../support/evm-chain.ts";
import { execute } from "../support/execute-sql.ts";
import { startFleet } from "../support/fleet.ts";
import { waitFor } from "../support/wait-for.ts";

const price = 12_500_000n;

test("a payment, its payout, a refund and an operator's command work, each process in its own database role", async () => {
  const chain = await startChain();
  const fleet = await startFleet({ chain, workers: 1 });
  const { shop, databaseUrl } = fleet;
  const admin = adminIn({ DATABASE_URL: databaseUrl, OPERATOR: "night watch" });
  const buy = async (referenceId: string) => {
    const buyer = await fundBuyer(chain);
    const id = await createPayment(shop, { referenceId, cents: "1250" });
    await pay(shop, id, buyer, chain.id);
    expect(await waitFinal(shop, id, 90_000)).toMatchObject({ status: "succeeded" });
    return { id, buyer };
  };
  const arrived = (amount: bigint) =>
    waitFor(async () => (await usdcBalance(chain, fleet.destination)) === amount, { within: 30_000 });

  await buy("paid out");
  await arrived(price);

  expect(await admin("merchants", "hold", shop.caller.merchantId)).toMatchObject({ code: 0 });
  const { id, buyer } = await buy("refunded");
  const before = await usdcBalance(chain, buyer.address);
  await ask(shop, "POST", "/v1/refunds", { paymentId: id });
  await waitFor(async () => (await usdcBalance(chain, buyer.address)) === before + price, { within: 30_000 });

  await buy("released");
  expect(await admin("merchants", "release", shop.caller.merchantId)).toMatchObject({ code: 0 });
  await arrived(2n * price);

  const connected = await execute(
    databaseUrl,
    `select distinct application_name as process, regexp_replace(usename, '_[0-9a-f]+$', '') as role from pg_stat_activity
    where datname = current_database() and application_name in ('pay-api', 'pay-worker') order by 1`,
  );
  expect(connected).toEqual([
    { process: "pay-api", role: "pay_api" },
    { process: "pay-worker", role: "pay_worker" },
  ]);
});
