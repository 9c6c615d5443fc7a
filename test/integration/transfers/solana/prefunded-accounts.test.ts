import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { listNonceAddresses } from "../../../../chains/solana/nonce-accounts.ts";
import { openSolanaChain } from "../../../../chains/solana/open-solana-chain.ts";
import { fundSol } from "../../../../local/solana-client.ts";
import { tokenAccountOf } from "../../../../local/spl-tokens.ts";
import { createMetrics } from "../../../../runtime/metrics.ts";
import { parseNetworks } from "../../../../runtime/networks/read-networks.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { describeSolanaDeployment, makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, makeSolanaKeys, startTestSolana, tokenBalance } from "../../../support/test-solana.ts";

/** What an account without data must hold at least, lamports: anyone can send it to any address. */
const EMPTY_RENT = 890_880n;

const solana = await startTestSolana();

test("lamports that a stranger sends to accounts before they exist prevent neither a start nor payments nor payouts", async () => {
  const keys = await makeSolanaKeys(solana);
  const { deployment, chains } = parseNetworks(await describeSolanaDeployment(solana, keys));
  const network = chains.find((one) => "nonceAccounts" in one);
  if (!network || !("nonceAccounts" in network)) throw new Error("the document has no Solana cluster");
  const places = await listNonceAddresses(
    openSolanaChain(network, createMetrics(new Registry(), "worker")),
    deployment,
  );
  const treasuryAccount = tokenAccountOf(solana.mint, keys.treasury.address);
  await fundSol(solana.client, [treasuryAccount, ...places.map(({ address }) => address)], EMPTY_RENT);

  const fixture = await makeSolanaMerchantFixture(solana, { keys });
  await fundSol(solana.client, [tokenAccountOf(solana.mint, fixture.destination)], EMPTY_RENT);
  const paymentId = await fixture.pay(await fundSolanaBuyer(solana, 1_000_000n));
  const { id } = await fixture.settlementOf(paymentId);
  expect(await fixture.settle(id)).toEqual(["begun"]);
  await fixture.watchUntil(async () => {
    await fixture.submit();
    return (await tokenBalance(solana, fixture.destination)) === 1_000_000n;
  });
  const lines = unwrap(await fixture.reconcile());
  expect(lines.length).toBeGreaterThan(1);
  expect(lines.filter(({ difference }) => difference !== 0n)).toEqual([]);
});
