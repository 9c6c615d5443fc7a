import { expect, test } from "vitest";
import { AUTHORIZATION_USED_TOPIC } from "../../../../chains/evm/abi.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, mine, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { useAuthorizations, useForNothing } from "../../../support/use-authorizations.ts";

test("payments whose nonces are used for nothing, beside the transfer of another payment, expire, and are searched for once", async () => {
  const chain = await startChain();
  const proxy = await startAlteringProxy({ target: chain.url });
  const fixture = await makeMerchantFixture(chain, { rpcUrls: [proxy.url] });
  const payer = await fundBuyer(chain);
  const ids = [await fixture.create(100n), await fixture.create(100n), await fixture.create(100n)];
  const attempts: string[] = [];
  for (const id of ids) attempts.push(await fixture.attempt(id, payer));
  await fixture.verify(...attempts);
  const [paid, ...unpaid] = await fixture.transfers();
  if (!paid) throw new Error("there is no transfer");
  await useAuthorizations(chain, fixture, { payer, transfers: [...unpaid.map(useForNothing), paid] });
  await fixture.watch();
  await chain.client.increaseTime({ seconds: 7_200 });
  await mine(chain, 2);
  const searched: string[] = [];
  proxy.alter((method, [filter], result) => {
    const { topics } = (filter ?? {}) as { topics?: string[][] };
    if (method === "eth_getLogs" && topics?.[0]?.[0] === AUTHORIZATION_USED_TOPIC) searched.push(String(topics[2]));
    return result;
  });
  const statesOf = async () => Promise.all(ids.map(async (id) => (await fixture.status(id)).state));
  for (let pass = 0; pass < 5 && (await statesOf()).includes("processing"); pass += 1) await fixture.watch();
  expect((await statesOf()).toSorted()).toEqual(["expired", "expired", "succeeded"]);
  expect(searched.toSorted()).toEqual(unpaid.map((row) => row.authorization_nonce).toSorted());
  expect((await fixture.transfers()).map(({ state }) => state).toSorted()).toEqual(["confirmed", "ended", "ended"]);
  await mine(chain, 2);
  await fixture.watch();
  expect(searched).toHaveLength(2);
  expect(fixture.lines.join()).not.toContain("no reading showed its log");
});
