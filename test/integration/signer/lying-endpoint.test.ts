import { expect, test } from "vitest";
import { listAllDeposits } from "../../../db/queries/deposits.ts";
import { toClaim } from "../../../payments/payouts/request-payouts.ts";
import { agreeDeposits } from "../../../signer/agree-deposits.ts";
import { sumLone } from "../../../signer/lone-deposits.ts";
import type { DepositClaim } from "../../../signer/protocol.ts";
import { RpcRefusal, startAlteringProxy } from "../../support/altering-proxy.ts";
import { startChain } from "../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../support/merchant-fixture.ts";
import { payInBulk } from "../../support/pay-in-bulk.ts";
import { startTestSigner } from "../../support/test-signer.ts";
import { waitFor } from "../../support/wait-for.ts";

// Deposits that only one of the signer's endpoints shows count together: their sum stays below the amount that needs two (10,000 units).

const UNIT = 1_000_000n;
const amount = 4_000n * UNIT;
const chain = await startChain();
const { asset } = chain;

/** Starts a signer with two endpoints, and a merchant with payments of 4,000 units. `pay` makes them in one transaction. */
async function setUp() {
  const second = await startAlteringProxy({ target: chain.url });
  const signing = await startTestSigner(chain, { rpcUrls: [chain.url, second.url] });
  const { signer, deps, store, registry } = signing;
  const fixture = await makeMerchantFixture(chain, { signer });
  const pay = async (count: number): Promise<DepositClaim[]> => {
    const made = await payInBulk(chain, fixture, { count, amount });
    const all = await listAllDeposits(fixture.db, { after: "", limit: 1_000 });
    return all.filter(({ payment_id }) => made.includes(payment_id)).map(toClaim);
  };
  /** Makes small payments in one transaction each. */
  const payEach = async (count: number): Promise<DepositClaim[]> => {
    for (let made = 0; made < count; made += 1) await payInBulk(chain, fixture, { count: 1, amount: 1n });
    return (await listAllDeposits(fixture.db, { after: "", limit: 1_000 })).map(toClaim);
  };
  const claim = async (claims: readonly DepositClaim[]) =>
    (await signer.claimDeposits(claims)).map((result) => (result.ok ? "ok" : result.reason));
  return {
    ...signing,
    pay,
    payEach,
    second,
    claim,
    lone: () => sumLone(store, asset),
    recorded: () => Number(store.prepare("select count(*) as rows from deposit").get()?.["rows"]),
    agree: async () => {
      await agreeDeposits(deps);
      const metric = await registry.getSingleMetric("pay_signer_lone_deposit_age_seconds")?.get();
      return metric?.values[0]?.value;
    },
    /** Every receipt is one that only the first endpoint shows. */
    hide: () => second.alter((method, _params, result) => (method === "eth_getTransactionReceipt" ? null : result)),
    cut: () => second.alter(() => new RpcRefusal({ code: -32_000, message: "" }, 503)),
    show: () => second.alter(undefined),
  };
}

test("an endpoint that shows small deposits that do not exist gains less than the amount that needs two, in one receipt and over many requests", async () => {
  const { pay, claim, hide, lone, recorded, agree, clock } = await setUp();
  hide();
  const claims = await pay(3);
  expect(await claim(claims)).toEqual(["ok", "ok", "not_final"]);
  for (const one of [...claims.slice(2), ...(await pay(1))]) expect(await claim([one])).toEqual(["not_final"]);
  expect([lone(), recorded()]).toEqual([2n * amount, 2]);
  clock.advance(30 * 86_400_000);
  expect(await agree()).toBeGreaterThanOrEqual(30 * 86_400);
  expect(await claim(claims.slice(2))).toEqual(["not_final"]);
  expect(lone()).toBe(2n * amount);
});

test("two requests at the same time do not verify more than one of them alone", async () => {
  const { pay, claim, hide, recorded } = await setUp();
  hide();
  const parts = [await pay(2), await pay(2)];
  const results = (await Promise.all(parts.map(claim))).flat();
  expect(recorded(), results.join(" ")).toBe(2);
  expect(results.filter((result) => result === "ok").length).toBeLessThanOrEqual(2);
});

test("deposits of more than that are verified at once, and a second endpoint shows later what one has shown", async () => {
  const { pay, claim, lone, agree, store } = await setUp();
  const claims = [...(await pay(3)), ...(await pay(3))];
  expect(await claim(claims)).toEqual(claims.map(() => "ok"));
  expect(lone()).toBe(2n * amount);
  expect([await agree(), lone()]).toEqual([0, 0n]);
  expect(await claim(await pay(1))).toEqual(["ok"]);
  expect(lone()).toBe(amount);
  expect([await agree(), lone()]).toEqual([0, 0n]);
  // A pass in which nothing is open adds no row.
  await agree();
  expect(store.prepare("select count(*) as rows from deposit_agreement").get()).toEqual({ rows: 2 });
});

test("while the second endpoint is down, deposits are verified up to that amount, wait, and go on", async () => {
  const { pay, claim, cut, show, lone, agree } = await setUp();
  cut();
  const claims = await pay(3);
  expect(await claim(claims)).toEqual(["ok", "ok", "not_final"]);
  expect([(await agree()) ?? 0, lone()]).toEqual([expect.any(Number), 2n * amount]);
  show();
  // An endpoint that did not answer is not asked for some seconds.
  await waitFor(async () => (await claim(claims)).every((result) => result === "ok"), { within: 15_000, every: 500 });
  expect(lone()).toBe(2n * amount);
  expect([await agree(), lone()]).toEqual([0, 0n]);
});

test("a second endpoint that refuses calls after some has shown the first hundred deposits", async () => {
  const { payEach, claim, agree, lone, second } = await setUp();
  const claims = await payEach(104);
  expect(new Set(await claim(claims))).toEqual(new Set(["ok"]));
  let left = 102;
  second.alter((method, _params, result) => {
    if (method !== "eth_getTransactionReceipt") return result;
    left -= 1;
    return left >= 0 ? result : new RpcRefusal({ code: -32_000, message: "" }, 503);
  });
  await agree();
  // The oldest of the next ones was asked for alone.
  expect(lone()).toBe(3n);
});
