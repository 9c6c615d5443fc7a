import { expect, test } from "vitest";
import { type CollectedField, readCollected } from "../../../../payments/buyer-data/collected-data.ts";
import { addPolicy } from "../../../../payments/buyer-data/collection-policies.ts";
import { acceptConfirm } from "../../../../payments/lifecycle/confirm-payment.ts";
import type { WalletResult } from "../../../../payments/lifecycle/wallet-results.ts";
import { cleanUp } from "../../../../payments/maintenance/clean-up.ts";
import { nameRequester } from "../../../../payments/requester.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { signUnconfirmed } from "../../../support/signed-payment.ts";
import { testActor } from "../../../support/test-actor.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
await addPolicy(fixture.deps, {
  actor: testActor,
  merchantId: fixture.merchantId,
  asset: null,
  unit: null,
  minimum: null,
});

const makeFields = (fullName: string): CollectedField[] =>
  Object.entries({ fullName, dob: "1990-02-28", tosConfirmed: "true", porCountry: "SE", porAddress: "Uppsala 17" }).map(
    ([id, value]) => ({ id, value }),
  );
const [truth, forged] = [makeFields("Zoë Quux"), makeFields("Mallory")];

/** Creates a signed payment whose authorization a third party can relay. */
async function sign() {
  const buyer = await fundBuyer(chain);
  const { paymentId, option, results, relay } = await signUnconfirmed(fixture, { chain, buyer });
  const confirm = (name: string, fields: CollectedField[], given: readonly WalletResult[] = results) =>
    acceptConfirm(fixture.deps, {
      paymentId,
      mode: fixture.mode,
      optionId: option.id,
      results: given,
      requester: nameRequester("app", ["app", name], { isOne: true }),
      collected: { fields, keepMs: 90 * 86_400_000 },
    });
  const kept = async () =>
    (await readCollected(fixture.deps, paymentId)).map(({ fields, proven }) => ({ fields, proven }));
  return { paymentId, confirm, relay, kept };
}

test("a confirm that was refused because a third party had relayed its authorization still provides its payment's data", async () => {
  const { paymentId, confirm, relay, kept } = await sign();
  await fixture.watch();
  await relay();
  const accepted = await confirm("buyer", truth);
  await fixture.verify((accepted.ok && accepted.value.attemptId) || "");
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).not.toBe("requires_action");
  expect(await kept()).toEqual([{ fields: truth, proven: true }]);
  await cleanUp({ ...fixture.deps, now: () => new Date(Date.now() + 3 * 86_400_000) });
  expect(await kept()).toEqual([{ fields: truth, proven: true }]);
});

test("the data of a confirm that follows a third party's relay is kept as unproven", async () => {
  const { paymentId, confirm, relay, kept } = await sign();
  await relay();
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).not.toBe("requires_action");
  expect(await confirm("stranger", forged)).toMatchObject({ ok: true });
  expect(await confirm("buyer", truth)).toMatchObject({ ok: true });
  expect(await kept()).toEqual([
    { fields: forged, proven: false },
    { fields: truth, proven: false },
  ]);
});

test("the data of an unverifiable confirm is not proven by an unsolicited payment", async () => {
  const { paymentId, confirm, relay, kept } = await sign();
  const garbage: WalletResult[] = [{ type: "walletRpc", data: [`0x${"11".repeat(65)}`] }];
  expect(await confirm("stranger", forged, garbage)).toMatchObject({ ok: true });
  await relay();
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).not.toBe("requires_action");
  expect(await kept()).toEqual([{ fields: forged, proven: false }]);
  // Repeating the confirm does not make the data proven.
  await confirm("stranger", forged, garbage);
  expect(await kept()).toEqual([{ fields: forged, proven: false }]);
  const both = await sign();
  await both.confirm("stranger", forged, garbage);
  await both.confirm("buyer", truth);
  await both.relay();
  await fixture.watch();
  expect(await both.kept()).toEqual([{ fields: truth, proven: true }]);
});
