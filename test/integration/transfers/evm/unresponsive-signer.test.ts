import { expect, test } from "vitest";
import { fundBuyers, startChain } from "../../../support/evm-chain.ts";
import { setCloudCredentials, startKms } from "../../../support/fake-kms.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

test("a lane whose key service fails stores and sends nothing, keeps no nonce, and relays everything once it signs again", async () => {
  const chain = await startChain();
  const [lane] = chain.keys.lanes;
  if (!lane) throw new Error("the chain has no lane");
  const kms = await startKms(lane.privateKey);
  await setCloudCredentials(kms.url);
  const key = { awsKms: { keyId: "lane", region: "eu-central-1", endpoint: kms.url } };
  const fixture = await makeTransfersFixture(chain, { change: { lanes: [{ address: lane.address, key }] } });
  const signed = await fixture.signAll(await fundBuyers(chain, 3));
  const ids = signed.map(({ id }) => id);

  kms.failNext(Array.from({ length: 30 }, () => ({ status: 500, name: "InternalException" })));
  for (let index = 0; index < 3; index += 1)
    await expect(fixture.relay()).rejects.toMatchObject({ code: "signer_unavailable" });
  expect(await fixture.statesOf(ids)).toEqual(["ready", "ready", "ready"]);
  expect(await fixture.transactions()).toEqual([]);
  expect(await fixture.lane()).toMatchObject({ next_nonce: 0, owner: null });

  kms.failNext([]);
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf(ids)).toEqual(["confirmed", "confirmed", "confirmed"]);
});
