import { encodeFunctionData, parseAbi } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { reconcileChain } from "../../../../payments/accounting/reconcile-chain.ts";
import { bookException, listExceptions, returnException } from "../../../../payments/accounting/resolve-exceptions.ts";
import {
  fundBuyer,
  mine,
  networksFor,
  sendUsdc,
  startChain,
  type TestChain,
  usdcBalance,
} from "../../../support/evm-chain.ts";
import { execute } from "../../../support/execute-sql.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { makeClock } from "../../../support/test-deps.ts";
import { fundSolanaBuyer, sendTokens, startTestSolana, tokenBalance } from "../../../support/test-solana.ts";

const DAY_MS = 86_400_000;
/** One moment for the whole file, so that no test is disturbed by the end of a day. */
const noonTomorrow = Math.ceil(Date.now() / DAY_MS) * DAY_MS + DAY_MS / 2;
const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);

/** Returns a chain whose clock stands at a given time, and a merchant fixture on it whose USDC has a dust amount. */
async function makeDustFixture({ dust = "10", at }: { dust?: string; at?: number } = {}) {
  const chain = await startChain();
  if (at !== undefined) await setTime(chain, at);
  const [{ assets } = { assets: [] }] = (await networksFor(chain)).chains;
  const fixture = await makeMerchantFixture(chain, { change: { assets: assets.map((asset) => ({ ...asset, dust })) } });
  return { chain, fixture, treasury: chain.keys.treasury.address };
}

async function setTime(chain: TestChain, at: number): Promise<void> {
  await chain.client.setNextBlockTimestamp({ timestamp: BigInt(Math.floor(at / 1000)) });
  await mine(chain);
}

const dustOf = ({ databaseUrl }: Pick<MerchantFixture, "databaseUrl">) =>
  execute(
    databaseUrl,
    "select day::text, amount::text, transfers, group_id is not null as booked from dust order by day",
  );
const open = (fixture: Pick<MerchantFixture, "deps">) => listExceptions(fixture.deps, 1_000);
const booked = async (fixture: Pick<MerchantFixture, "db">, account: string) =>
  (await listBalances(fixture.db, { account }))[0]?.amount ?? 0n;
const linesOf = (fixture: MerchantFixture, text: string) => fixture.lines.filter((line) => line.includes(text));

/** Expects the ledger to match the chain at every block that was read. */
async function expectReconciled(fixture: MerchantFixture, chain: TestChain, since: number): Promise<void> {
  const { number } = await fixture.db.selectFrom("chain_cursor").select("number").executeTakeFirstOrThrow();
  for (let block = since; block <= number; block += 1) {
    const lines = unwrap(await reconcileChain(fixture.deps, { chain: chain.id, block }));
    expect([block, lines.filter(({ difference }) => difference !== 0n)]).toEqual([block, []]);
  }
}

/** Sends `count` deposits of one minor unit in one transaction. */
async function sprinkle(chain: TestChain, count: number): Promise<void> {
  const { token, multicall } = chain.contracts;
  const abi = parseAbi([
    "function approve(address spender, uint256 value) returns (bool)",
    "function transferFrom(address from, address to, uint256 value) returns (bool)",
  ]);
  const stranger = await fundBuyer(chain);
  await chain.client.setBalance({ address: stranger.address, value: 10n ** 20n });
  const write = async (to: `0x${string}`, data: `0x${string}`) => {
    const hash = await chain.client.sendTransaction({ account: stranger, to, data, gas: 90_000_000n });
    expect((await chain.client.waitForTransactionReceipt({ hash })).status).toBe("success");
  };
  await write(token, encodeFunctionData({ abi, functionName: "approve", args: [multicall, BigInt(count)] }));
  const args = [stranger.address, chain.keys.treasury.address, 1n] as const;
  const callData = encodeFunctionData({ abi, functionName: "transferFrom", args });
  const calls = Array.from({ length: count }, () => ({ target: token, allowFailure: false, callData }));
  const many = parseAbi([
    "function aggregate3((address target, bool allowFailure, bytes callData)[] calls) returns ((bool success, bytes returnData)[])",
  ]);
  await write(multicall, encodeFunctionData({ abi: many, functionName: "aggregate3", args: [calls] }));
}

test("a day's deposits below the dust amount become one exception and one log line, and the ledger holds all of them", async () => {
  const { chain, fixture, treasury } = await makeDustFixture({ at: noonTomorrow });
  const since = Number(await chain.client.getBlockNumber());
  const today = dayOf(Number((await chain.client.getBlock()).timestamp) * 1_000);
  await sprinkle(chain, 250);
  const stranger = await fundBuyer(chain);
  for (const amount of [9n, 10n, 5_000_000n]) await sendUsdc(chain, stranger, treasury, amount);
  await fixture.watch();

  // Until the day is over, dust is in flight: one row per asset and day, whatever the number of deposits.
  expect(await dustOf(fixture)).toEqual([{ day: today, amount: "259", transfers: 251, booked: false }]);
  expect((await open(fixture)).map(({ kind, amount }) => [kind, amount])).toEqual([
    ["unknown", 10n],
    ["unknown", 5_000_000n],
  ]);
  expect(linesOf(fixture, "matches no payment or payout")).toHaveLength(2);
  expect(await booked(fixture, "treasury")).toBe(5_000_010n);
  await expectReconciled(fixture, chain, since);

  await setTime(chain, noonTomorrow + DAY_MS);
  await fixture.watch();
  await mine(chain);
  await fixture.watch();
  expect(await dustOf(fixture)).toEqual([{ day: today, amount: "259", transfers: 251, booked: true }]);
  const dust = (await open(fixture)).filter(({ kind }) => kind === "dust");
  expect(dust).toMatchObject([
    { amount: 259n, asset: chain.asset, payer: null, note: `251 small deposits of ${today}` },
  ]);
  expect(linesOf(fixture, "dust of a day is booked")).toHaveLength(1);
  expect(linesOf(fixture, "matches no payment or payout")).toHaveLength(2);
  expect(await booked(fixture, "treasury")).toBe(await usdcBalance(chain, treasury));
  await expectReconciled(fixture, chain, since);

  // An operator closes it like any other exception.
  const id = dust[0]?.id ?? 0;
  expect(await returnException(fixture.deps, { actor: testActor, id })).toMatchObject({ code: "invalid_state" });
  unwrap(await bookException(fixture.deps, { actor: testActor, id, as: "losses", note: "dust" }));
  expect(await booked(fixture, "losses")).toBe(-259n);
  expect(await booked(fixture, "treasury")).toBe(await usdcBalance(chain, treasury));
});

test("a dust deposit found after its day was booked is counted on the next unbooked day", async () => {
  const { chain, fixture, treasury } = await makeDustFixture({ at: noonTomorrow });
  const stranger = await fundBuyer(chain);
  const block = Number(await chain.client.getBlockNumber());
  await sendUsdc(chain, stranger, treasury, 4n);
  await fixture.watch();
  await setTime(chain, noonTomorrow + DAY_MS);
  await fixture.watch();
  const [first] = await dustOf(fixture);
  expect(first).toMatchObject({ amount: "4", booked: true });
  const found = await fixture.db.selectFrom("observation").selectAll().executeTakeFirstOrThrow();
  await fixture.db
    .insertInto("observation")
    .values({ ...found, block_number: block + 1, log_index: 77, amount: 3n, booked: false, dust_id: null })
    .execute();
  await fixture.watch();
  expect(await dustOf(fixture)).toEqual([
    first,
    { day: dayOf(noonTomorrow + DAY_MS), amount: "3", transfers: 1, booked: false },
  ]);
});

test("money that leaves the treasury is never dust, and a payment below the dust amount is still a payment", async () => {
  const { chain, fixture, treasury } = await makeDustFixture({ dust: "3000000" });
  const paymentId = await fixture.pay(await fundBuyer(chain), 200n);
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  const thief = (await fundBuyer(chain)).address;
  await sendUsdc(chain, privateKeyToAccount(chain.keys.treasury.privateKey), thief, 5n);
  await fixture.watch();
  expect((await open(fixture)).map(({ kind, amount }) => [kind, amount])).toEqual([["left", -5n]]);
  expect(await dustOf(fixture)).toEqual([]);
  expect(await booked(fixture, "treasury")).toBe(await usdcBalance(chain, treasury));
});

test("dust deposits on Solana are grouped by the day of the worker's clock", async () => {
  const solana = await startTestSolana();
  const clock = makeClock();
  clock.advance(noonTomorrow - Date.now());
  const asset = { asset: solana.asset, symbol: "USDC", name: "USD Coin", decimals: solana.mint.decimals };
  const program = solana.mint.program.startsWith("Tokenz") ? "token-2022" : "token";
  const assets = [{ ...asset, program, peg: "iso4217/USD", dust: "10" }];
  const fixture = await makeSolanaMerchantFixture(solana, { clock, change: { assets } });
  const stranger = await fundSolanaBuyer(solana);
  for (const amount of [4n, 5n, 10n])
    await sendTokens(solana, { from: stranger, to: fixture.keys.treasury.address, amount });
  const isTaken = async () => (await dustOf(fixture))[0]?.["transfers"] === 2;
  await fixture.watchUntil(isTaken);
  await fixture.watchUntil(async () => (await booked(fixture, "exceptions")) === -10n);
  clock.advance(DAY_MS);
  await fixture.watchUntil(async () => (await booked(fixture, "exceptions")) === -19n);
  expect(await dustOf(fixture)).toEqual([{ day: dayOf(noonTomorrow), amount: "9", transfers: 2, booked: true }]);
  expect(await booked(fixture, "treasury")).toBe(await tokenBalance(solana, fixture.keys.treasury.address));
});
