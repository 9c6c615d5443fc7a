import { listDestinations } from "../../payments/merchants/destinations.ts";
import { setPayoutSchedule } from "../../payments/payouts/payout-policies.ts";
import { type MerchantFixture, unwrap } from "./merchant-fixture.ts";
import { testActor } from "./test-actor.ts";

type Merchant = Pick<MerchantFixture, "accountId" | "merchantId" | "mode" | "deps">;
type Schedule = NonNullable<Parameters<typeof setPayoutSchedule>[1]["schedule"]>;

/** Lets the payouts to a merchant's first destination accumulate. */
export async function accumulatePayouts(
  { accountId, merchantId, mode, deps }: Merchant,
  schedule: Schedule,
): Promise<void> {
  const owner = { accountId, merchantId, mode };
  const [destination] = unwrap(await listDestinations(deps, owner));
  unwrap(await setPayoutSchedule(deps, { actor: testActor, ...owner, id: destination?.id ?? "", schedule }));
}
