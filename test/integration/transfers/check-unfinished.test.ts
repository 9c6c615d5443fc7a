import { expect, test } from "vitest";
import { checkChain } from "../../../chains/open-chains.ts";
import { beginRefunds } from "../../../payments/payouts/begin-refunds.ts";
import { beginSettlements } from "../../../payments/payouts/begin-settlements.ts";
import { refundPayment } from "../../../payments/payouts/refund-payment.ts";
import { startTransfers } from "../../../transfers/start-transfers.ts";
import { fundBuyer, networksFor, startChain } from "../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../support/merchant-fixture.ts";
import { testActor } from "../../support/test-actor.ts";
import { makeDeps } from "../../support/test-deps.ts";

const chain = await startChain();
const usdc = (await networksFor(chain)).chains[0]?.assets[0];
const at = (address: string) => ({ asset: `${chain.id}/erc20:${address.toLowerCase()}` });

test.each([
  ["at whose address there is no code", at(`0x${"99".repeat(20)}`), "does not have 6 decimals"],
  ["that is another contract", at(chain.contracts.multicall), "does not have 6 decimals"],
  ["with other decimals", { decimals: 18 }, "does not have 18 decimals"],
  ["with another domain", { domain: { name: "USD Coin", version: "9" } }, "does not match the token contract"],
])("an asset %s stops the start, and is named", async (_what, change, words) => {
  const { deps } = await makeDeps(chain, { change: { assets: [{ ...usdc, ...change }] } });
  const error = { code: "wrong_contract", transient: false, message: expect.stringContaining(words) };
  await expect(checkChain(deps.chains, chain.id)).rejects.toMatchObject(error);
});

test("a correct asset does not stop the start", async () => {
  const { deps } = await makeDeps(chain);
  await checkChain(deps.chains, chain.id);
});

const other = (address: string) => ({ ...usdc, ...at(address) });

test("a process refuses to start when an asset with unfinished transfers is missing from the networks file", async () => {
  const fixture = await makeMerchantFixture(chain);
  const paymentId = await fixture.create();
  await fixture.verify(await fixture.attempt(paymentId, await fundBuyer(chain)));
  const { databaseUrl } = fixture;
  const without = await makeDeps(chain, { databaseUrl, change: { assets: [other(`0x${"99".repeat(20)}`)] } });
  await expect(startTransfers(without.deps, chain.id)).rejects.toMatchObject({
    code: "unknown_asset",
    transient: false,
    message: expect.stringContaining(`${chain.asset} is missing and has 1 unfinished transfer`),
  });
  await fixture.relay();
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  await startTransfers(without.deps, chain.id);

  // Its due refund and settlement wait, and the refusal repeats while a payout is in flight.
  const { id } = await fixture.settlementOf(paymentId);
  const { refundId } = unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId, mode: "live" }));
  expect(await beginSettlements(without.deps, [id])).toEqual(["unknown_asset"]);
  expect(await beginRefunds(without.deps, [refundId])).toEqual(["unknown_asset"]);
  expect(await fixture.refund(refundId)).toEqual(["begun"]);
  const restarted = await makeDeps(chain, { databaseUrl, change: { assets: [other(`0x${"99".repeat(20)}`)] } });
  await expect(startTransfers(restarted.deps, chain.id)).rejects.toMatchObject({ code: "unknown_asset" });
});

test("a process refuses to start when the kind of an asset has changed under unfinished payments", async () => {
  const fixture = await makeMerchantFixture(chain);
  const paymentId = await fixture.create();
  const attempt = await fixture.attempt(paymentId, await fundBuyer(chain));
  const { domain: _, ...rest } = usdc as Record<string, unknown>;
  const pushed = { ...rest, kind: "push" };
  delete (pushed as Record<string, unknown>)["bytesSignatures"];
  const { databaseUrl } = fixture;
  const changed = await makeDeps(chain, { databaseUrl, change: { assets: [pushed] } });
  const refused = (words: string) =>
    expect(startTransfers(changed.deps, chain.id)).rejects.toMatchObject({
      message: expect.stringContaining(
        `the kind of ${chain.asset} must not become push: it has 1 ${words} of kind eip3009`,
      ),
    });
  await refused("waiting confirm");
  await fixture.verify(attempt);
  await refused("unfinished transfer");
  await fixture.relay();
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  await startTransfers(changed.deps, chain.id);
});
