import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

/** A fixture with a transfer that can be made, and before it two transfers of accounts without money. */
async function makeMixedFixture() {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url] });
  const failing: string[] = [];
  for (let count = 0; count < 2; count += 1)
    failing.push((await fixture.sign(privateKeyToAccount(newKey().privateKey))).id);
  const good = (await fixture.sign(await fundBuyer(chain))).id;
  const retriesOf = async () => (await fixture.rowsOf(failing)).map(({ retries }) => retries);
  return { proxy, fixture, failing, good, retriesOf };
}

test("a transfer is sent before the transfers of its batch that fail are held, and they are held before the next batch", async () => {
  const { proxy, fixture, failing, good, retriesOf } = await makeMixedFixture();
  const whenSent: number[][] = [];
  proxy.hold(({ method }) =>
    method === "eth_sendRawTransaction" ? retriesOf().then((retries) => whenSent.push(retries)) : undefined,
  );
  await fixture.relay();
  expect(whenSent).toEqual([[0, 0]]);
  expect(await retriesOf(), "each was in one batch").toEqual([1, 1]);
  await fixture.watch();
  expect(await fixture.statesOf([good, ...failing])).toEqual(["confirmed", "ready", "ready"]);
});

test("the transfers of a batch that fail are held although the others cannot be signed", async () => {
  const { fixture, failing, good, retriesOf } = await makeMixedFixture();
  const [signer] = fixture.deps.keys.values().next().value?.lanes ?? [];
  if (!signer) throw new Error("the chain has no lane");
  signer.signTransaction = () => Promise.reject(new Error("the KMS is away"));
  await expect(fixture.relay()).rejects.toThrow("the KMS is away");
  expect(await retriesOf()).toEqual([1, 1]);
  expect(await fixture.statesOf([good, ...failing])).toEqual(["ready", "ready", "ready"]);
});
