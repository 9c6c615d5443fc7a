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

test("a lane whose key service refuses to sign does not stop the others, and its error is reported", async () => {
  const chain = await startChain({ lanes: 3 });
  const [broken, ...others] = chain.keys.lanes.toSorted((a, b) =>
    a.address.toLowerCase() < b.address.toLowerCase() ? -1 : 1,
  );
  if (!broken) throw new Error("the chain has no lane");
  const kms = await startKms(broken.privateKey);
  await setCloudCredentials(kms.url);
  const lanes = [
    { address: broken.address, key: { awsKms: { keyId: "lane", region: "eu-central-1", endpoint: kms.url } } },
    ...others.map(({ address }) => ({
      address,
      key: { env: `LANE_KEY_${chain.keys.lanes.findIndex((lane) => lane.address === address)}` },
    })),
  ];
  const fixture = await makeTransfersFixture(chain, { change: { lanes } });
  const ids = (await fixture.signAll(await fundBuyers(chain, 3))).map(({ id }) => id);
  kms.failNext(Array.from({ length: 30 }, () => ({ status: 400, name: "DisabledException" })));
  await expect(fixture.relay()).rejects.toMatchObject({ code: "signer_refused" });
  await fixture.watch();
  expect(await fixture.statesOf(ids)).toEqual(["confirmed", "confirmed", "confirmed"]);
});
