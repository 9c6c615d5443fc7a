import { expect, test } from "vitest";
import { listAllDeposits } from "../../../db/queries/deposits.ts";
import { toClaim } from "../../../payments/payouts/request-payouts.ts";
import { parseNetworks } from "../../../runtime/networks/read-networks.ts";
import { agreeDeposits } from "../../../signer/agree-deposits.ts";
import { sumLone } from "../../../signer/lone-deposits.ts";
import { startAlteringProxy } from "../../support/altering-proxy.ts";
import { describeSolanaDeployment, makeSolanaMerchantFixture } from "../../support/solana-merchant-fixture.ts";
import { startSignerFor } from "../../support/test-signer.ts";
import { fundSolanaBuyer, makeSolanaKeys, startTestSolana } from "../../support/test-solana.ts";

const CENTS = 400_000n;
const amount = 4_000_000_000n;

test("payments on Solana that only one endpoint lists are verified up to the amount that needs two, and the others when a second one lists them", async () => {
  const { solana, second, signer, deps, store, claims } = await payFour(CENTS);
  const claim = async () =>
    (await signer.claimDeposits(claims)).map((result) => (result.ok ? "ok" : result.reason)).toSorted();

  let reads = 0;
  second.alter((method, _params, result) => {
    if (method === "getTransaction") {
      reads += 1;
      return null;
    }
    return method === "getSignaturesForAddress" ? [] : result;
  });
  expect(await claim()).toEqual(["not_final", "not_final", "ok", "ok"]);
  expect(sumLone(store, solana.asset)).toBe(2n * amount);
  reads = 0;
  await agreeDeposits(deps);
  expect(sumLone(store, solana.asset)).toBe(2n * amount);
  // The second endpoint does not show the oldest deposit, so the others are not asked for.
  expect(reads).toBe(1);
  second.alter(undefined);
  expect(await claim()).toEqual(["ok", "ok", "ok", "ok"]);
  expect(sumLone(store, solana.asset)).toBe(2n * amount);
  await agreeDeposits(deps);
  expect(sumLone(store, solana.asset)).toBe(0n);
});

test("a second endpoint is asked for one page of the history that shows many payments, and not for each of them", async () => {
  const { solana, second, signer, deps, store, claims } = await payFour(100n);
  expect(await signer.claimDeposits(claims)).toEqual(claims.map(() => ({ ok: true })));
  expect(sumLone(store, solana.asset)).toBe(4_000_000n);
  const calls: Record<string, number> = {};
  const missing = claims[1]?.txHash;
  second.alter((method, params, result) => {
    calls[method] = (calls[method] ?? 0) + 1;
    if (method === "getTransaction") return JSON.stringify(params).includes(String(missing)) ? null : result;
    if (method !== "getSignaturesForAddress" || !Array.isArray(result)) return result;
    return result.filter(({ signature }) => signature !== missing);
  });
  await agreeDeposits(deps);
  // The second endpoint lacks the second payment, so the sum of the last three stays.
  expect(sumLone(store, solana.asset)).toBe(3_000_000n);
  second.alter((method, _params, result) => {
    calls[method] = (calls[method] ?? 0) + 1;
    return result;
  });
  for (const method of Object.keys(calls)) delete calls[method];
  await agreeDeposits(deps);
  expect(sumLone(store, solana.asset)).toBe(0n);
  expect(calls).toMatchObject({ getTransaction: 1 });
});

test("a payment that was claimed without its signed bytes counts as shown by a second endpoint only with its transaction", async () => {
  const { solana, second, signer, deps, store, claims } = await payFour(100n);
  const bare = claims.map(({ transaction: _bytes, ...claim }) => claim);
  expect(await signer.claimDeposits(bare)).toEqual(bare.map(() => ({ ok: true })));
  second.alter((method, params, result) =>
    method === "getTransaction" && !JSON.stringify(params).includes(String(bare[0]?.txHash)) ? null : result,
  );
  await agreeDeposits(deps);
  expect(sumLone(store, solana.asset)).toBe(3_000_000n);
  second.alter(undefined);
  await agreeDeposits(deps);
  expect(sumLone(store, solana.asset)).toBe(0n);
});

/** Makes four payments to a signer with two endpoints, in the order in which they were made. */
async function payFour(cents: bigint) {
  const solana = await startTestSolana();
  const keys = await makeSolanaKeys(solana);
  const second = await startAlteringProxy({ target: solana.url });
  const document = await describeSolanaDeployment(solana, keys, { rpcUrls: [solana.url, second.url] });
  const { SOLANA_TREASURY_KEY = "" } = keys.env;
  const { signer, deps, store } = await startSignerFor(parseNetworks(document), { SOLANA_TREASURY_KEY });
  const fixture = await makeSolanaMerchantFixture(solana, { keys, signer });
  for (let count = 0; count < 4; count += 1) await fixture.pay(await fundSolanaBuyer(solana, amount), cents);
  const claims = (await listAllDeposits(fixture.db, { after: "", limit: 100 })).map(toClaim);
  return { solana, second, signer, deps, store, claims };
}
