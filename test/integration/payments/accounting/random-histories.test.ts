import fc from "fast-check";
import { sql } from "kysely";
import { type Hex, parseAbi } from "viem";
import { expect, test } from "vitest";
import { operator } from "../../../../local/chain-client.ts";
import { reconcileChain } from "../../../../payments/accounting/reconcile-chain.ts";
import {
  assignException,
  bookException,
  listExceptions,
  returnException,
} from "../../../../payments/accounting/resolve-exceptions.ts";
import { setFee } from "../../../../payments/merchants/fee-policies.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { prepareReorg } from "../../../support/chain-reorg.ts";
import { fundBuyers, mine, sendUsdc, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";

/** Blocks until finality: more than any reorg of a history removes. */
const FINAL = 8;
const BUYERS = 3;
const LATER_MS = 5_000;

const which = fc.nat(20);
const steps = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant("pay" as const),
        who: fc.nat(1),
        cents: fc.integer({ min: 1, max: 900 }),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("settle" as const), which }) },
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constant("refund" as const), which, quarters: fc.integer({ min: 1, max: 4 }) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant("unsolicited" as const), amount: fc.integer({ min: 1, max: 5_000_000 }) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant("resolve" as const),
        how: fc.constantFrom("assign", "return", "capital"),
        which,
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("reorg" as const), depth: fc.integer({ min: 1, max: 4 }) }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant("fee" as const), basisPoints: fc.constantFrom(0, 1, 250, 9_999) }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("block" as const), blocked: fc.boolean() }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant("work" as const) }) },
  ),
  { minLength: 12, maxLength: 24 },
);
type Step = (typeof steps extends fc.Arbitrary<(infer S)[]> ? S : never) & { do: string };

async function makeWorld() {
  const chain = await startChain();
  const change = { finality: { blocks: FINAL } };
  const one = await makeMerchantFixture(chain, { change });
  const two = await makeMerchantFixture(chain, { change, databaseUrl: one.databaseUrl, clock: one.clock });
  const buyers = await fundBuyers(chain, BUYERS);
  await mine(chain, FINAL);
  await one.watch();
  const world = { chain, one, fixtures: [one, two], buyers, payments: [] as string[], paid: 0 };

  const work = async () => {
    one.clock.advance(LATER_MS);
    await one.watch();
    await two.watch();
    await one.relay();
    await one.watch();
  };
  const idsOf = async (table: "settlement" | "refund", states: string[]) =>
    (
      await one.db
        .selectFrom(table)
        .select("id")
        .where("state", "in", states as never)
        .orderBy("created_at")
        .execute()
    ).map(({ id }) => id);
  const begin = async () => {
    await one.watch();
    await one.refund(...(await idsOf("refund", ["due"])));
    await one.settle(...(await idsOf("settlement", ["due", "accumulating"])));
  };
  const list = async (functionName: "blacklist" | "unBlacklist") => {
    const abi = parseAbi(["function blacklist(address)", "function unBlacklist(address)"]);
    const call = {
      address: chain.contracts.token,
      abi,
      functionName,
      args: [one.destination as Hex],
      account: operator,
    } as const;
    await chain.client.waitForTransactionReceipt({ hash: await chain.client.writeContract(call) });
  };
  const pick = <T>(all: readonly T[], index: number): T | undefined => all[index % Math.max(1, all.length)];

  const nextBuyer = () => {
    world.paid += 1;
    return pick(buyers, world.paid);
  };

  const run = async (step: Step): Promise<void> => {
    if (step.do === "pay") {
      const fixture = world.fixtures[step.who] ?? one;
      const buyer = nextBuyer();
      const paymentId = await fixture.create(BigInt(step.cents));
      if (buyer) await fixture.verify(await fixture.attempt(paymentId, buyer));
      world.payments.push(paymentId);
    } else if (step.do === "settle") {
      const id = pick(await idsOf("settlement", ["due"]), step.which);
      if (id) await one.settle(id);
    } else if (step.do === "refund") {
      const paymentId = pick(world.payments, step.which) ?? "pay_";
      const { paid_amount: paid, paid_asset: asset } =
        (await one.db
          .selectFrom("payment")
          .select(["paid_amount", "paid_asset"])
          .where("id", "=", paymentId)
          .executeTakeFirst()) ?? {};
      const value = ((paid ?? 0n) * BigInt(step.quarters)) / 4n;
      const amount = step.quarters === 4 ? undefined : { unit: `caip19/${asset}`, value };
      const made = await refundPayment(one.deps, { actor: testActor, paymentId, mode: "live", amount });
      if (made.ok) await one.refund(made.value.refundId);
    } else if (step.do === "unsolicited") {
      const buyer = nextBuyer();
      if (buyer) await sendUsdc(chain, buyer, chain.keys.treasury.address, BigInt(step.amount));
    } else if (step.do === "resolve") {
      const exception = pick(await listExceptions(one.deps, 50), step.which);
      const paymentId = pick(world.payments, step.which);
      if (!exception) return;
      const { id } = exception;
      if (step.how === "return") unwrap(await returnException(one.deps, { actor: testActor, id }));
      else if (step.how === "capital")
        unwrap(await bookException(one.deps, { actor: testActor, id, as: "capital", note: "" }));
      else if (paymentId) unwrap(await assignException(one.deps, { actor: testActor, id, paymentId, unnamed: true }));
    } else if (step.do === "reorg") {
      const reorg = await prepareReorg(chain);
      await work();
      await mine(chain, step.depth);
      await one.watch();
      await reorg();
      await one.watch();
    } else if (step.do === "fee") {
      await setFee(one.deps, {
        actor: testActor,
        accountId: one.accountId,
        merchantId: null,
        basisPoints: step.basisPoints,
        fixedMicros: 0n,
      });
    } else if (step.do === "block") await list(step.blocked ? "blacklist" : "unBlacklist");
    else await work();
  };

  /** Works until nothing moves any more. Whatever is left then waits for money that does not arrive. */
  const rest = async () => {
    await list("unBlacklist");
    for (let round = 0; round < 30; round += 1) {
      one.clock.advance(60_000);
      await begin();
      await one.relay();
      await mine(chain, FINAL);
      await one.watch();
      const moving = await one.db
        .selectFrom("transfer")
        .select("id")
        .where("state", "not in", ["confirmed", "ended"])
        .execute();
      const begun = [...(await idsOf("settlement", ["paying"])), ...(await idsOf("refund", ["paying"]))];
      if (round > 2 && moving.length === 0 && begun.length === 0) return;
    }
    throw new Error("the history does not come to rest");
  };
  return { ...world, run, rest };
}

/**
 * Expects what holds at every moment: no merchant balance is negative, and it equals both the open settlements and the
 * ledger.
 */
async function expectSound({ db }: Pick<MerchantFixture, "db">) {
  const { rows: sums } = await sql<{ asset: string; sum: bigint }>`
    select asset, sum(amount) as sum from ledger_entry group by asset having sum(amount) <> 0`.execute(db);
  expect(sums).toEqual([]);
  const { rows: days } = await sql<object>`
    select e.account from (select account, asset, sum(amount) as amount from ledger_entry group by account, asset) e
    full join (select account, asset, sum(amount) as amount from ledger_day group by account, asset) d
      on d.account = e.account and d.asset = e.asset where e.amount is distinct from d.amount`.execute(db);
  expect(days).toEqual([]);
  const { rows: owed } = await sql<{ owed: bigint; settling: bigint; booked: bigint }>`
    select b.amount as owed,
      coalesce((select sum(amount) from settlement s
        where s.merchant_id = b.merchant_id and s.asset = b.asset and s.state in ('due', 'accumulating')), 0) as settling,
      coalesce((select -sum(amount) from ledger_day d
        where d.account = 'payable:' || b.merchant_id and d.asset = b.asset), 0) as booked
    from merchant_balance b`.execute(db);
  for (const { owed: amount, settling, booked } of owed) {
    expect(amount).toBeGreaterThanOrEqual(0n);
    expect([settling, booked]).toEqual([amount, amount]);
  }
}

test("the ledger is sound after every step of a random history, and it matches the chain at the end", {
  timeout: 1_200_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (history) => {
      const world = await makeWorld();
      for (const step of history) {
        await world.run(step as Step);
        await expectSound(world.one);
      }
      await world.rest();
      await expectSound(world.one);
      const { db } = world.one;
      const { rows } = await sql<{ account: string; amount: bigint }>`
          select account, sum(amount) as amount from ledger_day where asset = ${world.chain.asset} group by account`.execute(
        db,
      );
      const booked = (account: string) => rows.find((row) => row.account === account)?.amount ?? 0n;
      const held = await usdcBalance(world.chain, world.chain.keys.treasury.address);
      expect(booked("treasury")).toBe(held);
      const lines = unwrap(await reconcileChain(world.one.deps, { chain: world.chain.id }));
      expect(lines.filter(({ difference }) => difference !== 0n)).toEqual([]);
      // Exceptions that are being returned and have not been sent yet.
      const returning = await db
        .selectFrom("refund")
        .select("amount")
        .where("state", "=", "due")
        .where("exception_id", "is not", null)
        .execute();
      expect(booked("in_transit")).toBe(-returning.reduce((sum, { amount }) => sum + amount, 0n));
      const unfinished = await db.selectFrom("payment").select("id").where("state", "=", "processing").execute();
      expect(unfinished).toEqual([]);
    }),
    { numRuns: 8, endOnFailure: true },
  );
});
