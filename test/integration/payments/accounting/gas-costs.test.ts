import { expect, test } from "vitest";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";

test("the gas of every final transaction is booked, and the ledger matches the lane's balance", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const lane = chain.keys.lanes[0]?.address ?? "0x";
  const before = await chain.client.getBalance({ address: lane });
  const { id } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain)));
  await fixture.settle(id);
  await fixture.relay();
  await fixture.watch();
  const spent = before - (await chain.client.getBalance({ address: lane }));
  expect(spent).toBeGreaterThan(0n);
  const native = `${chain.id}/slip44:60`;
  expect(await listBalances(fixture.db, { asset: native })).toEqual([
    { account: "gas_spent", asset: native, amount: spent },
    { account: `lane:${lane.toLowerCase()}`, asset: native, amount: -spent },
  ]);
  const groups = await fixture.db
    .selectFrom("ledger_group")
    .select(["tx_hash", "block_number"])
    .where("kind", "=", "gas")
    .execute();
  const transactions = await fixture.db.selectFrom("transaction").select(["hash", "block_number"]).execute();
  expect(groups).toHaveLength(2);
  expect(new Set(groups.map(({ tx_hash }) => tx_hash))).toEqual(new Set(transactions.map(({ hash }) => hash)));
});

test("the gas of a transaction that is not final is not booked", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain, { change: { finality: { blocks: 3 } } });
  await fixture.pay(await fundBuyer(chain));
  expect(await listBalances(fixture.db, { account: "gas_spent" })).toEqual([]);
  await chain.client.mine({ blocks: 2 });
  await fixture.watch();
  expect(await listBalances(fixture.db, { account: "gas_spent" })).toHaveLength(1);
});

const rollupReceipts: [string, Record<string, string>, (gas: bigint) => bigint][] = [
  ["an L1 data fee is booked as part of the gas", { l1Fee: "0x3e8" }, () => 1_000n],
  [
    "an operator fee before the Jovian upgrade is booked as part of the gas",
    { l1Fee: "0x3e8", operatorFeeScalar: "0x1e8480", operatorFeeConstant: "0x7" },
    (gas) => 1_000n + 2n * gas + 7n,
  ],
  [
    "an operator fee since the Jovian upgrade is booked as part of the gas",
    { l1Fee: "0x3e8", operatorFeeScalar: "0x3", operatorFeeConstant: "0x7", daFootprintGasScalar: "0x190" },
    (gas) => 1_000n + 300n * gas + 7n,
  ],
  ["Arbitrum's gas for data is booked once, because it is part of the gas used", { gasUsedForL1: "0x3e8" }, () => 0n],
];

test.each(rollupReceipts)("%s", async (_what, members, besides) => {
  const chain = await startChain();
  const proxy = await startAlteringProxy({ target: chain.url });
  const fixture = await makeMerchantFixture(chain, { rpcUrls: [proxy.url] });
  proxy.alter((method, _params, result) =>
    method === "eth_getTransactionReceipt" && result ? { ...result, ...members } : result,
  );
  await fixture.pay(await fundBuyer(chain));
  const row = await fixture.db.selectFrom("transaction").selectAll().executeTakeFirstOrThrow();
  const gas = row.gas_used ?? 0n;
  expect(row.fee).toBe(gas * (row.gas_price ?? 0n) + besides(gas));
  expect(await listBalances(fixture.db, { account: "gas_spent" })).toMatchObject([{ amount: row.fee }]);
});
