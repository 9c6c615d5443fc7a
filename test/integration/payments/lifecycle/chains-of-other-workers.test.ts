import { type PrivateKeyAccount, parseEther } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { expirePayment } from "../../../../payments/lifecycle/expire-payment.ts";
import { createVerify } from "../../../../payments/lifecycle/verify-batches.ts";
import { createVerifier } from "../../../../transfers/verifier.ts";
import { fundBuyer } from "../../../support/evm-chain.ts";
import { type MerchantFixture, signOption, unwrap } from "../../../support/merchant-fixture.ts";
import { setDirect, startQuotes } from "../../../support/quote-fixture.ts";
import { mintTestToken } from "../../../support/token-kinds.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const { chain, assets, makeMerchant } = await startQuotes();

/** Returns the steps of a worker whose networks file does not have the chain. */
function workerWithoutChain({ deps }: MerchantFixture) {
  const chains = new Map();
  const others = { ...deps, chains, verifier: createVerifier({ ...deps, chains }) };
  return { verify: createVerify(others), expire: (id: string) => expirePayment(others, id) };
}

/** Sets when a worker last had the chain in its networks file, relative to the fixture's clock. */
async function setServed(fixture: MerchantFixture, ms: number): Promise<void> {
  const due_at = new Date(fixture.deps.now().getTime() + ms);
  await fixture.db.updateTable("chain_cursor").set({ due_at }).execute();
}

async function makePusher(): Promise<PrivateKeyAccount> {
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, assets.push, buyer.address);
  await chain.client.setBalance({ address: buyer.address, value: parseEther("1") });
  return buyer;
}

/** Creates a payment that lives for a minute, and sends its push. */
async function push(fixture: MerchantFixture) {
  const buyer = await makePusher();
  const expiresAt = new Date(fixture.deps.now().getTime() + MINUTE);
  const paymentId = await fixture.create(100n, { expiresAt });
  const [option] = await fixture.offer(paymentId, buyer);
  if (!option) throw new Error("no push is offered");
  return { paymentId, option, results: await signOption(option, buyer, chain) };
}

const stateOf = async (fixture: MerchantFixture, id: string) => (await fixture.status(id)).state;

test.each([true, false])(
  "a worker without the chain leaves a confirm to another worker (direct: %s)",
  async (direct) => {
    const fixture = await makeMerchant([assets.usdc]);
    if (direct) await setDirect(fixture, assets.usdc, true);
    const id = await fixture.create();
    const attempt = await fixture.attempt(id, await fundBuyer(chain));
    expect(await workerWithoutChain(fixture).verify(attempt)).toBe("done");
    expect(await fixture.verificationResult(attempt)).toBe("waiting");
    await fixture.verify(attempt);
    expect(await stateOf(fixture, id)).toBe("processing");
  },
);

test("a worker without the chain leaves a confirm of test mode to another worker", async () => {
  const fixture = await makeMerchant([assets.usdc], { mode: "test" });
  const id = await fixture.create();
  const attempt = await fixture.attempt(id, await fundBuyer(chain));
  expect(await workerWithoutChain(fixture).verify(attempt)).toBe("done");
  await fixture.verify(attempt);
  expect(await stateOf(fixture, id)).toBe("succeeded");
});

test("a confirm of test mode on a chain that no worker has ever had is refused after a day, and its payment ends", async () => {
  const fixture = await makeMerchant([assets.usdc], { mode: "test" });
  await fixture.db.deleteFrom("asset_backfill").execute();
  await fixture.db.deleteFrom("chain_cursor").execute();
  const id = await fixture.create(100n, { expiresAt: new Date(fixture.deps.now().getTime() + MINUTE) });
  const attempt = await fixture.attempt(id, await fundBuyer(chain));
  const { verify, expire } = workerWithoutChain(fixture);
  fixture.clock.advance(DAY - MINUTE);
  await verify(attempt);
  expect(await expire(id)).toMatchObject({ decided: false });
  fixture.clock.advance(2 * MINUTE);
  await verify(attempt);
  expect(await expire(id)).toEqual({ decided: true });
  expect(await stateOf(fixture, id)).toBe("expired");
});

test("a confirmed push in a block pays its payment, although a worker without the chain took the confirm first", async () => {
  const fixture = await makeMerchant([assets.push]);
  const { paymentId, option, results } = await push(fixture);
  const attempt = unwrap(await fixture.confirm(paymentId, option.id, results)).attemptId ?? "";
  await workerWithoutChain(fixture).verify(attempt);
  expect(await fixture.verificationResult(attempt)).toBe("waiting");
  await fixture.verify(attempt);
  await fixture.watch();
  expect(await stateOf(fixture, paymentId)).toBe("succeeded");
});

test.each([true, false])(
  "a confirm is refused once no worker has had its chain for a day (direct: %s)",
  async (direct) => {
    const fixture = await makeMerchant([assets.usdc]);
    if (direct) await setDirect(fixture, assets.usdc, true);
    const attempt = await fixture.attempt(await fixture.create(), await fundBuyer(chain));
    await setServed(fixture, -DAY + MINUTE);
    await workerWithoutChain(fixture).verify(attempt);
    expect(await fixture.verificationResult(attempt)).toBe("waiting");
    await setServed(fixture, -DAY - MINUTE);
    await workerWithoutChain(fixture).verify(attempt);
    expect(await fixture.verificationResult(attempt)).toEqual({ refused: expect.stringContaining("withdrawn") });
  },
);

test("a worker without the chain does not expire a payment whose push the chain's watcher has not read yet", async () => {
  const fixture = await makeMerchant([assets.push]);
  await fixture.watch();
  const { paymentId } = await push(fixture);
  fixture.clock.advance(3 * MINUTE);
  expect(await workerWithoutChain(fixture).expire(paymentId)).toMatchObject({ decided: false });
  await fixture.watch();
  expect(await stateOf(fixture, paymentId)).toBe("succeeded");
});

test("a worker without the chain expires a payment that the chain's watcher has read past its deadline", async () => {
  const fixture = await makeMerchant([assets.usdc]);
  const id = await fixture.create(100n, { expiresAt: new Date(fixture.deps.now().getTime() + MINUTE) });
  await fixture.offer(id, await fundBuyer(chain));
  const chain_time = new Date(fixture.deps.now().getTime() + 2 * MINUTE);
  await fixture.db.updateTable("chain_cursor").set({ chain_time }).execute();
  fixture.clock.advance(3 * MINUTE);
  expect(await workerWithoutChain(fixture).expire(id)).toEqual({ decided: true });
});

test("a payment no longer waits for a chain that no worker has had for a day, except at a worker that has it", async () => {
  const fixture = await makeMerchant([assets.usdc]);
  const id = await fixture.create(100n, { expiresAt: new Date(fixture.deps.now().getTime() + MINUTE) });
  await fixture.offer(id, await fundBuyer(chain));
  fixture.clock.advance(2 * MINUTE);
  await setServed(fixture, -DAY + MINUTE);
  expect(await workerWithoutChain(fixture).expire(id)).toMatchObject({ decided: false });
  await setServed(fixture, -DAY - MINUTE);
  expect(await expirePayment(fixture.deps, id)).toMatchObject({ decided: false });
  expect(await workerWithoutChain(fixture).expire(id)).toEqual({ decided: true });
  expect(await stateOf(fixture, id)).toBe("expired");
});
