import { expect, test } from "vitest";
import { confirm } from "../../local/buyer-client.ts";
import { fundBuyer, startChain } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { expectSound, waitUntilIdle } from "../support/fleet-invariants.ts";
import { confirmUntilFinal, signPayment } from "../support/sign-payments.ts";

test("a confirm sent 16 times at once to two api processes, and again after the end, causes one transfer and one response", async () => {
  const chain = await startChain();
  const fleet = await startFleet({ chain, apis: 2 });
  const signed = await signPayment(fleet.shop, chain, await fundBuyer(chain));
  const shops = fleet.apis.map((api) => ({ ...fleet.shop, baseUrl: api.url ?? "" }));
  const send = (index: number) => confirm(shops[index % 2] ?? fleet.shop, signed.paymentId, signed);

  const atOnce = await Promise.all(Array.from({ length: 16 }, (_, index) => send(index)));
  // A confirm answers requires_action when a slow machine needs more than two seconds for the verification.
  for (const answer of atOnce) expect(["requires_action", "processing", "succeeded"]).toContain(answer.status);

  const end = await confirmUntilFinal(fleet.shop, signed);
  expect(end.status).toBe("succeeded");
  const afterwards = await Promise.all(Array.from({ length: 16 }, (_, index) => send(index)));
  expect(afterwards).toEqual(afterwards.map(() => end));
  await waitUntilIdle(fleet);
  await expectSound(fleet, chain, { succeeded: 1 });
});
