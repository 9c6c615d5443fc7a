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
  const solana = await startTestSolana();
  const keys = await makeSolanaKeys(solana);
  const second = await startAlteringProxy({ target: solana.url });
  const document = await describeSolanaDeployment(solana, keys, { rpcUrls: [solana.url, second.url] });
  const { SOLANA_TREASURY_KEY = "" } = keys.env;
  const { signer, deps, store } = await startSignerFor(parseNetworks(document), { SOLANA_TREASURY_KEY });
  const fixture = await makeSolanaMerchantFixture(solana, { keys, signer });
  for (let count = 0; count < 4; count += 1) await fixture.pay(await fundSolanaBuyer(solana, amount), CENTS);
  const claims = (await listAllDeposits(fixture.db, { after: "", limit: 100 })).map(toClaim);
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
