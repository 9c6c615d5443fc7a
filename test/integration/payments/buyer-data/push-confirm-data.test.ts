import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { type CollectedField, readCollected } from "../../../../payments/buyer-data/collected-data.ts";
import { addPolicy } from "../../../../payments/buyer-data/collection-policies.ts";
import { acceptConfirm } from "../../../../payments/lifecycle/confirm-payment.ts";
import { nameRequester } from "../../../../payments/requester.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { mintTestToken, startTokenKinds } from "../../../support/token-kinds.ts";

const { chain, change, assets } = await startTokenKinds();
const fixture = await makeMerchantFixture(chain, { change, assets: [assets.push] });
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

test("a push hash proves no identity: the data of every confirm with that hash is kept as unproven and never replaced", async () => {
  const paymentId = await fixture.create();
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, assets.push, buyer.address);
  await chain.client.setBalance({ address: buyer.address, value: 10n ** 18n });
  const [option] = await fixture.offer(paymentId, buyer);
  const confirm = (name: string, fields: CollectedField[]) =>
    acceptConfirm(fixture.deps, {
      paymentId,
      mode: fixture.mode,
      optionId: option?.id ?? "",
      results: [{ type: "walletRpc", data: [`0x${"ab".repeat(32)}`] }],
      requester: nameRequester("app", ["app", name], { isOne: true }),
      collected: { fields, keepMs: 60_000 },
    });
  expect(await confirm("stranger", forged)).toMatchObject({ ok: true });
  expect(await confirm("buyer", truth)).toMatchObject({ ok: true });
  for (let index = 0; index < 8; index += 1) await confirm(`more ${index}`, forged);
  await fixture.db.updateTable("attempt").set({ state: "verified" }).where("payment_id", "=", paymentId).execute();
  await confirm("stranger", makeFields("Other"));
  const kept = (await readCollected(fixture.deps, paymentId)).map(({ fields, proven }) => ({ fields, proven }));
  expect(kept).toHaveLength(5);
  expect(kept.slice(0, 2)).toEqual([
    { fields: forged, proven: false },
    { fields: truth, proven: false },
  ]);
});
