import { expect, test } from "vitest";
import { claimAllDeposits } from "../../../payments/payouts/claim-all-deposits.ts";
import { parseNetworks } from "../../../runtime/networks/read-networks.ts";
import { rebuildPayouts } from "../../../signer/rebuild.ts";
import { startAlteringProxy } from "../../support/altering-proxy.ts";
import { describeSolanaDeployment, makeSolanaMerchantFixture } from "../../support/solana-merchant-fixture.ts";
import { startSignerFor } from "../../support/test-signer.ts";
import { fundSolanaBuyer, makeSolanaKeys, startTestSolana, tokenBalance } from "../../support/test-solana.ts";

const solana = await startTestSolana();

test.each([["first"], ["second"]])(
  "a rebuild on Solana records nothing when the %s of two endpoints leaves out a payout and as much that came in",
  async (lying) => {
    const keys = await makeSolanaKeys(solana);
    const fixture = await makeSolanaMerchantFixture(solana, { keys });
    const buyer = await fundSolanaBuyer(solana, 3_000_000n);
    const { id } = await fixture.settlementOf(await fixture.pay(buyer, 300n));
    const states = async () => (await fixture.transactions()).map(({ state }) => state);
    await fixture.watchUntil(async () => (await states()).every((state) => state === "final"));
    const [deposited] = (await fixture.transactions()).slice(-1);
    expect(await fixture.settle(id)).toEqual(["begun"]);
    await fixture.submit();
    const [paidOut] = (await fixture.transactions()).slice(-1);
    await fixture.watchUntil(async () => (await states()).every((state) => state === "final"));
    expect(await tokenBalance(solana, keys.treasury.address)).toBe(0n);

    const endpoint = await startAlteringProxy({ target: solana.url });
    const rpcUrls = lying === "first" ? [endpoint.url, solana.url] : [solana.url, endpoint.url];
    const document = await describeSolanaDeployment(solana, keys, { rpcUrls });
    const { SOLANA_TREASURY_KEY = "" } = keys.env;
    const rebuilt = await startSignerFor(parseNetworks(document), { SOLANA_TREASURY_KEY });
    expect(await claimAllDeposits({ db: fixture.db, signer: rebuilt.signer })).toEqual({ verified: 1, refused: {} });
    const options = {
      former: new Map([[solana.id, []]]),
      from: new Map<string, number>(),
      accepted: new Set<string>(),
      left: new Map<string, bigint>(),
    };
    // Without these two the history has the same sum.
    const hidden = new Set([deposited?.hash, paidOut?.hash]);
    endpoint.alter((method, _params, result) =>
      method === "getSignaturesForAddress"
        ? (result as { signature: string }[]).filter(({ signature }) => !hidden.has(signature))
        : result,
    );
    await expect(rebuildPayouts(rebuilt.deps, options)).rejects.toThrow("two endpoints differ");
    expect(rebuilt.payouts()).toEqual([]);
    endpoint.alter(undefined);
    expect(await rebuildPayouts(rebuilt.deps, options)).toEqual({ recorded: 1, unattributed: [], held: [] });
  },
);
