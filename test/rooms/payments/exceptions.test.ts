import { expect, test } from "vitest";
import { moveRows } from "../../../db/moves.ts";
import { fundBuyer, startChain, usdcBalance } from "../../support/chain.ts";
import { makeTill } from "../../support/till.ts";

test("money that arrives for a payment that has ended is booked as nobody's, not lost, and ends nothing else", async () => {
  const chain = await startChain();
  const till = await makeTill(chain);
  const [late, fine] = [await till.create(100n), await till.create(250n)];
  await till.verify(await till.attempt(late, await fundBuyer(chain)), await till.attempt(fine, await fundBuyer(chain)));
  // By an operator's hand, say.
  await moveRows(till.db, "payment", { ids: [late], from: "processing", to: "failed", at: till.deps.now() });
  await till.relay();
  await till.watch();
  expect((await till.status(late)).state).toBe("failed");
  expect((await till.status(fine)).state).toBe("succeeded");
  const entries = await till.db.selectFrom("ledger_entry").select(["account", "amount"]).orderBy("id").execute();
  expect(entries).toContainEqual({ account: "exceptions", amount: -1_000_000n });
  expect(entries).toContainEqual({ account: `payable:${till.merchantId}`, amount: -2_500_000n });
  const treasury = entries
    .filter(({ account }) => account === "treasury")
    .reduce((sum, { amount }) => sum + amount, 0n);
  expect(treasury).toBe(await usdcBalance(chain, chain.keys.treasury.address));
  expect(await till.db.selectFrom("settlement").select("amount").execute()).toEqual([{ amount: 2_500_000n }]);
});
