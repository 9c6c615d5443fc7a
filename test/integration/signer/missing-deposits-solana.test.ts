import { expect, test } from "vitest";
import { listAllDeposits } from "../../../db/queries/deposits.ts";
import { toClaim } from "../../../payments/payouts/request-payouts.ts";
import { parseNetworks } from "../../../runtime/networks/read-networks.ts";
import { startAlteringProxy } from "../../support/altering-proxy.ts";
import { describeSolanaDeployment, makeSolanaMerchantFixture } from "../../support/solana-merchant-fixture.ts";
import { startSignerFor } from "../../support/test-signer.ts";
import { fundSolanaBuyer, makeSolanaKeys, startTestSolana } from "../../support/test-solana.ts";

test("deposits that the signer's first endpoint no longer has are verified with the second one", async () => {
  const solana = await startTestSolana();
  const keys = await makeSolanaKeys(solana);
  const first = await startAlteringProxy({ target: solana.url });
  const document = await describeSolanaDeployment(solana, keys, { rpcUrls: [first.url, solana.url] });
  const { SOLANA_TREASURY_KEY = "" } = keys.env;
  const { signer } = await startSignerFor(parseNetworks(document), { SOLANA_TREASURY_KEY });
  const fixture = await makeSolanaMerchantFixture(solana, { keys, signer });
  const buyer = await fundSolanaBuyer(solana);
  const paymentIds = [await fixture.pay(buyer, 100n), await fixture.pay(buyer, 100n)];
  const claims = (await listAllDeposits(fixture.db, { after: "", limit: 100 })).map(toClaim);
  expect(claims).toHaveLength(paymentIds.length);
  first.alter((method, _params, result) => {
    if (method === "getTransaction") return null;
    if (method === "getSignaturesForAddress") return [];
    if (method !== "getSignatureStatuses") return result;
    const { value } = result as { value: unknown[] };
    return { ...(result as object), value: value.map(() => null) };
  });
  expect(await signer.claimDeposits(claims.slice(0, 1))).toMatchObject([{ ok: true }]);
  expect(await signer.claimDeposits(claims)).toMatchObject([{ ok: true }, { ok: true }]);
});
