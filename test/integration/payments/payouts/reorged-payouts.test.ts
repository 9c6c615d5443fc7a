import { expect, test } from "vitest";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { checkLedger } from "../../../../payments/accounting/check-ledger.ts";
import { listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { prepareReorg } from "../../../support/chain-reorg.ts";
import { fundBuyer, mine, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { copyDatabase } from "../../../support/test-database.ts";

const UNIT = 1_000_000n;
const FINALITY = 3;

test.each([
  ["before its new block is final", 0],
  ["when its new block is final", FINALITY],
])(
  "a payout that a restored database has booked as an exception and that a reorg below the final height has moved is adopted %s, and the exception ends",
  async (_when, depth) => {
    const chain = await startChain();
    const options = { change: { finality: { blocks: FINALITY } } };
    const first = await makeMerchantFixture(chain, options);
    const payment = await first.pay(await fundBuyer(chain), 100n);
    await mine(chain, FINALITY);
    await first.watch();
    expect((await first.status(payment)).state).toBe("succeeded");
    await first.db.destroy();
    const backup = await copyDatabase(first.databaseUrl);

    const lost = await makeMerchantFixture(chain, { ...options, databaseUrl: first.databaseUrl });
    await lost.watch();
    const reorg = await prepareReorg(chain);
    expect(await lost.settle((await lost.settlementOf(payment)).id)).toEqual(["begun"]);
    await lost.relay();
    const transactions = await lost.db.selectFrom("transaction").selectAll().orderBy("nonce", "desc").execute();
    await lost.db.destroy();

    const restored = await makeMerchantFixture(chain, { ...options, databaseUrl: backup });
    await mine(chain, FINALITY);
    await restored.watch();
    const exceptions = async () => (await listExceptions(restored.deps, 10)).map(({ kind, amount }) => [kind, amount]);
    expect(await exceptions()).toEqual([["left", -UNIT]]);

    await reorg();
    const serializedTransaction = `0x${transactions[0]?.bytes.toString("hex")}` as const;
    await chain.client.sendRawTransaction({ serializedTransaction });
    await mine(chain, depth);
    for (let pass = 0; pass < 2; pass += 1) await restored.watch();
    const { id } = await restored.settlementOf(payment);
    expect(await restored.settle(id)).toEqual(["begun"]);
    await restored.relay();
    expect((await restored.transfers()).map(({ state }) => state)).toEqual(["confirmed", "included"]);
    await mine(chain, FINALITY);
    for (let pass = 0; pass < 2; pass += 1) await restored.watch();
    expect((await restored.settlementOf(payment)).state).toBe("paid");
    expect(await usdcBalance(chain, first.destination)).toBe(UNIT);
    expect(await exceptions()).toEqual([]);
    for (const account of ["treasury", "in_transit", "exceptions"])
      expect((await listBalances(restored.db, { account }))[0]?.amount ?? 0n).toBe(0n);
    expect(await checkLedger(restored.db, { since: undefined })).toEqual([]);
    const orphaned = await restored.db
      .selectFrom("observation")
      .select("booked")
      .where("orphaned", "=", true)
      .execute();
    expect(orphaned).toEqual([{ booked: false }]);
  },
);
