import { expect, test } from "vitest";
import { getSolanaChain } from "../../../../chains/open-chains.ts";
import { fundTokens, makeMint } from "../../../../local/spl-tokens.ts";
import { startTransfers } from "../../../../transfers/start-transfers.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, startTestSolana } from "../../../support/test-solana.ts";

test.each([
  ["live", 0],
  ["test", 1],
] as const)("before a worker has started a chain, a payment in %s mode has %i options on it", async (mode, before) => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain, { mode });
  await fixture.db.deleteFrom("chain_block").execute();
  await fixture.db.deleteFrom("chain_cursor").execute();
  const buyer = await fundBuyer(chain);
  const id = await fixture.create();
  expect(await fixture.offer(id, buyer)).toHaveLength(before);
  await startTransfers(fixture.deps, chain.id);
  expect(await fixture.offer(id, buyer)).toHaveLength(1);
});

test("a token of a Solana cluster is offered once a worker has begun to read its history", async () => {
  const solana = await startTestSolana({ own: true });
  const added = await makeMint(solana.client);
  const fixture = await makeSolanaMerchantFixture(solana, { mints: [added] });
  const buyer = await fundSolanaBuyer(solana, 1_000_000n);
  await fundTokens(solana.client, added, [buyer.address], 1_000_000_000n);
  const chain = getSolanaChain(fixture.deps.chains, solana.id);
  const account = chain.tokens.get(`${solana.id}/token:${added.address}`)?.treasuryAccount ?? "";
  await fixture.db.deleteFrom("account_cursor").where("account", "=", account).execute();
  const id = await fixture.create();
  expect(await fixture.offer(id, buyer)).toHaveLength(1);
  await startTransfers(fixture.deps, solana.id);
  expect(await fixture.offer(id, buyer)).toHaveLength(2);
});
