import { expect, test } from "vitest";
import { makeCarrier } from "../../support/carry.ts";
import { fundBuyers, startChain } from "../../support/chain.ts";
import { setCloudCredentials, startKms } from "../../support/kms.ts";

test("a lane whose key service fails stores and sends nothing, keeps no nonce, and relays everything once it signs again", async () => {
  const chain = await startChain();
  const [lane] = chain.keys.lanes;
  if (!lane) throw new Error("the chain has no lane");
  const kms = await startKms(lane.privateKey);
  await setCloudCredentials(kms.url);
  const key = { awsKms: { keyId: "lane", region: "eu-central-1", endpoint: kms.url } };
  const carrier = await makeCarrier(chain, { change: { lanes: [{ address: lane.address, key }] } });
  const signed = await carrier.signAll(await fundBuyers(chain, 3));
  const ids = signed.map(({ id }) => id);

  kms.trouble(Array.from({ length: 30 }, () => ({ status: 500, name: "InternalException" })));
  for (let index = 0; index < 3; index += 1)
    await expect(carrier.relay()).rejects.toMatchObject({ code: "signer_unavailable" });
  expect(await carrier.statesOf(ids)).toEqual(["ready", "ready", "ready"]);
  expect(await carrier.transactions()).toEqual([]);
  expect(await carrier.lane()).toMatchObject({ next_nonce: 0, owner: null });

  kms.trouble([]);
  await carrier.relay();
  await carrier.watch();
  expect(await carrier.statesOf(ids)).toEqual(["confirmed", "confirmed", "confirmed"]);
});
