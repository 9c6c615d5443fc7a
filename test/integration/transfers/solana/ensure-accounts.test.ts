import { expect, test } from "vitest";
import { calculateFee } from "../../../../chains/solana/priority-fees.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { startTestSolana } from "../../../support/test-solana.ts";

const solana = await startTestSolana();

test("the transactions that create a deployment's accounts offer the cluster's least priority fee, so that a busy cluster includes them", async () => {
  const { deps } = await makeSolanaMerchantFixture(solana, { change: { minPriorityFee: "20000" } });
  const sent = await deps.db
    .selectFrom("transaction")
    .select(["gas_limit as units", "max_fee_per_gas as unitPrice"])
    .execute();
  expect(sent.length).toBeGreaterThan(0);
  // The price of a unit is rounded down, and the fee up.
  const fees = sent.map(({ units, unitPrice }) => calculateFee({ signatures: 0, units, unitPrice }));
  expect(fees).toEqual(sent.map(() => 20_000n));
});
