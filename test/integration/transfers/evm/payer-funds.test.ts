import type { PrivateKeyAccount } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeMerchantFixture, signOption, unwrap } from "../../../support/merchant-fixture.ts";
import { callTestToken, mintTestToken, startTokenKinds, tokenOf } from "../../../support/token-kinds.ts";

const DOLLAR = 1_000_000n;
const kinds = await startTokenKinds();
const { chain, assets } = kinds;
const proxy = await startFaultProxy({ target: chain.url });
const refused = { refused: expect.stringContaining("allowance covers only its other payments") };

/** Makes a fixture whose merchant takes one asset, and a buyer with money of it and gas. */
async function makePayer(asset: string) {
  const options = { rpcUrls: [proxy.url], change: kinds.change, assets: [asset] };
  const fixture = await makeMerchantFixture(chain, options);
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, asset, buyer.address);
  await chain.client.setBalance({ address: buyer.address, value: 10n ** 18n });
  const approve = (amount: bigint) =>
    callTestToken(chain, { token: tokenOf(asset), functionName: "approve", args: [kinds.permit2, amount], by: buyer });
  const relayAll = async () => {
    await fixture.relay();
    await fixture.watch();
  };
  return { fixture, buyer, approve, relayAll };
}

/** Signs options of two payments before either is confirmed, as one buyer in two windows does, and confirms both. */
async function confirmTwo(fixture: Awaited<ReturnType<typeof makePayer>>["fixture"], buyer: PrivateKeyAccount) {
  const ids = [await fixture.create(), await fixture.create()];
  const offers = await Promise.all(ids.map((id) => fixture.offer(id, buyer)));
  const attempts: string[] = [];
  for (const [index, id] of ids.entries()) {
    const option = offers[index]?.[0];
    if (!option) throw new Error("there is no way to pay");
    attempts.push(unwrap(await fixture.confirm(id, option.id, await signOption(option, buyer, chain))).attemptId ?? "");
    fixture.clock.advance(1);
  }
  return { ids, attempts };
}

test.each([
  ["in one batch", true],
  ["one after the other", false],
])(
  "of two payments that a buyer signs with the same permit nonce, verified %s, the second one is refused and paid later",
  async (_how, inOne) => {
    const { fixture, buyer, relayAll } = await makePayer(assets.permit);
    const { ids, attempts } = await confirmTwo(fixture, buyer);
    if (inOne) await fixture.verify(...attempts);
    else for (const attempt of attempts) await fixture.verify(attempt);
    expect(await Promise.all(attempts.map(fixture.verificationResult))).toEqual(["verified", refused]);
    await relayAll();
    // The options that the wallet asks for now have the next nonce.
    await fixture.verify(await fixture.attempt(ids[1] ?? "", buyer));
    await relayAll();
    for (const id of ids) expect((await fixture.status(id)).state).toBe("succeeded");
    expect(await fixture.db.selectFrom("burned_gas").selectAll().execute()).toEqual([]);
  },
);

test("a payer's payments through Permit2 are accepted up to its allowance, and those that are in a block no longer count", async () => {
  const { fixture, buyer, approve, relayAll } = await makePayer(assets.zeroFirst);
  await approve(3n * DOLLAR);
  const ids = await Promise.all(Array.from({ length: 4 }, () => fixture.create()));
  const attempts: string[] = [];
  for (const id of ids) attempts.push(await fixture.attempt(id, buyer));
  await fixture.verify(...attempts.slice(0, 2));
  const results = () => Promise.all(attempts.map(fixture.verificationResult));
  expect(await results()).toEqual(["verified", "verified", "waiting", "waiting"]);
  // Two dollars have left the account, and the watcher has not read that block: they are not deducted from the allowance twice.
  await fixture.relay();
  await fixture.verify(...attempts.slice(2));
  expect(await results()).toEqual(["verified", "verified", "verified", refused]);
  await relayAll();
  const states = await Promise.all(ids.map(async (id) => (await fixture.status(id)).state));
  expect(states).toEqual(["succeeded", "succeeded", "succeeded", "requires_action"]);
});

test("one call verifies several payments of an account that has approved enough for all", async () => {
  const { fixture, buyer, approve } = await makePayer(assets.zeroFirst);
  await approve(100n * DOLLAR);
  const attempts: string[] = [];
  for (let count = 0; count < 3; count += 1) attempts.push(await fixture.attempt(await fixture.create(), buyer));
  const before = proxy.calls["eth_call"] ?? 0;
  await fixture.verify(...attempts);
  expect((proxy.calls["eth_call"] ?? 0) - before).toBe(1);
  for (const attempt of attempts) expect(await fixture.verificationResult(attempt)).toBe("verified");
});
