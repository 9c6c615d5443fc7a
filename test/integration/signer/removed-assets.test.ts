import { expect, test } from "vitest";
import type { Chains } from "../../../chains/chain.ts";
import { listPaymentDeposits } from "../../../db/queries/deposits.ts";
import { toClaim } from "../../../payments/payouts/request-payouts.ts";
import { authorizePayouts } from "../../../signer/authorize-payouts.ts";
import { listAssetsOf, recordAssets } from "../../../signer/recorded-assets.ts";
import { insertPayout } from "../../../signer/records.ts";
import { fundBuyer, startChain } from "../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../support/merchant-fixture.ts";
import { startTestSigner } from "../../support/test-signer.ts";

// What was paid out in an asset still counts after the signer's networks file has lost the asset.

const [chain, other] = await Promise.all([startChain(), startChain({ chainId: 31_338 })]);
const signing = await startTestSigner(chain, { also: [{ chain: other }] });
const fixture = await makeMerchantFixture(chain, { signer: signing.signer });
const { merchantId, db } = fixture;
const { deps, store } = signing;

/** Starts the signer once more with a networks file of these chains. Returns what decides on payouts then. */
const restart = (chains: Chains) => {
  recordAssets(store, chains, deps.now());
  return { ...deps, chains };
};

test("money that was paid out on a chain is not paid a second time after the chain has left the networks file", async () => {
  const paymentId = await fixture.pay(await fundBuyer(chain), 500n);
  const deposits = (await listPaymentDeposits(db, [paymentId])).map(toClaim);
  const receiver = `0x${"c1".repeat(20)}`;
  const settlement = { kind: "settlement" as const, merchantId, receiver, amount: 5_000_000n, deposits };
  expect(await authorizePayouts(deps, [{ ...settlement, asset: other.asset, number: 901 }])).toMatchObject([
    { ok: true },
  ]);

  const without = restart(new Map([...deps.chains].filter(([id]) => id !== other.id)));
  const next = { ...settlement, asset: chain.asset, number: 902 };
  expect(await authorizePayouts(without, [next])).toMatchObject([{ ok: false, reason: "funds_short" }]);
  // The money of another payment suffices: only the destination in this asset, which is new, waits.
  const more = await fixture.pay(await fundBuyer(chain), 100n);
  const claims = (await listPaymentDeposits(db, [more])).map(toClaim);
  const small = { ...next, amount: 1_000_000n, deposits: claims };
  expect(await authorizePayouts(without, [small])).toMatchObject([{ reason: "destination_waiting" }]);
});

test("a networks file may change the currency of an asset only before its first deposit or payout", () => {
  const found = deps.chains.get(chain.id);
  const token = found?.tokens.get(chain.asset);
  if (found?.namespace !== "eip155" || !token) throw new Error("the signer has no such asset");
  const withPeg = (asset: string, peg: string): Chains =>
    new Map([[chain.id, { ...found, tokens: new Map([[asset, { ...token, asset, peg }]]) as typeof found.tokens }]]);
  expect(() => restart(withPeg(chain.asset, "iso4217/EUR"))).toThrow(`${chain.asset} was counted as iso4217/USD`);
  const unused = `${chain.id}/erc20:0x${"c2".repeat(20)}`;
  for (const peg of ["iso4217/USD", "iso4217/EUR"]) restart(withPeg(unused, peg));
  expect(listAssetsOf(store, "iso4217/EUR")).toEqual([{ asset: unused, decimals: token.decimals }]);
});

test("a networks file may not change how an asset is paid out while its treasury has signed payouts of it", () => {
  const found = deps.chains.get(chain.id);
  const token = found?.tokens.get(chain.asset);
  if (found?.namespace !== "eip155" || !token) throw new Error("the signer has no such asset");
  type Change = { asset?: string; kind: string; treasury?: string };
  const withKind = ({ asset = chain.asset, kind, treasury = found.treasury }: Change): Chains => {
    const tokens = new Map([[asset, { ...token, asset, kind }]]) as unknown as typeof found.tokens;
    return new Map([[chain.id, { ...found, treasury: treasury as typeof found.treasury, tokens }]]);
  };
  // Of this asset nothing was paid out yet: the payouts above were refused.
  for (const kind of ["permit2", "eip3009"]) restart(withKind({ kind }));
  const row = { asset: chain.asset, treasury: found.treasury, receiver: "0x01", amount: 5n, counted: 5n };
  insertPayout(store, { ...row, nonce: "0x0a", kind: "settlement", merchantId, paymentId: null }, deps.now());
  restart(withKind({ kind: "eip3009" }));
  for (const kind of ["permit2", "push"])
    expect(() => restart(withKind({ kind }))).toThrow(
      `the kind of ${chain.asset} must not become ${kind}: ${found.treasury} has signed payouts of it as eip3009`,
    );
  // Another treasury has other nonces, and the former one keeps its kind.
  restart(withKind({ kind: "permit2", treasury: "0x02" }));
  restart(withKind({ kind: "push", treasury: "0x02" }));
  expect(() => restart(withKind({ kind: "push" }))).toThrow("must not become push");
  restart(withKind({ kind: "eip3009" }));
});
