import { expect, test } from "vitest";
import { openDb } from "../../db/open.ts";
import { findOwner } from "../../db/queries/merchants.ts";
import { createPayment, waitFinal } from "../../local/buyer-client.ts";
import { createApiKey } from "../../payments/merchants/api-keys.ts";
import { payByApp, type Sign } from "../browser/fake-wallet-app.ts";
import { addCleanup } from "../support/cleanups.ts";
import { fundBuyer, startChain } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { unwrap } from "../support/merchant-fixture.ts";
import { testActor } from "../support/test-actor.ts";

test("the published wallet SDK pays with a key that has only the scope gateway", async () => {
  const chain = await startChain();
  const fleet = await startFleet({ chain, workers: 1 });
  const db = openDb(fleet.databaseUrl, { max: 1 });
  addCleanup(() => db.destroy());
  const { account_id: accountId = "" } = (await findOwner(db, fleet.shop.caller.merchantId)) ?? {};
  const wanted = { actor: testActor, accountId, mode: "live", scopes: ["gateway"] } as const;
  const { key: apiKey } = unwrap(await createApiKey({ db, now: () => new Date() }, wanted));
  const buyer = await fundBuyer(chain);
  const sign: Sign = ({ params }) => {
    const { types, ...rest } = JSON.parse(params[1] as string);
    const { EIP712Domain: _, ...own } = types;
    return buyer.signTypedData({ ...rest, types: own });
  };

  const id = await createPayment(fleet.shop, { referenceId: "order-1", cents: "1250" });
  expect(await payByApp(fleet.shop, id, `${chain.id}:${buyer.address}`, sign, { apiKey })).toBe("succeeded");
  expect(await waitFinal(fleet.shop, id, 5_000)).toMatchObject({ status: "succeeded" });
});
