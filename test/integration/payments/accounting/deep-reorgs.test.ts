import { encodeFunctionData, type Hex, type PrivateKeyAccount, parseAbi } from "viem";
import { expect, test } from "vitest";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { fundGas } from "../../../../local/usdc.ts";
import { checkLedger } from "../../../../payments/accounting/check-ledger.ts";
import { correctLedger } from "../../../../payments/accounting/corrections.ts";
import { reconcileChain } from "../../../../payments/accounting/reconcile-chain.ts";
import { bookException, listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { prepareReorg } from "../../../support/chain-reorg.ts";
import { fundBuyer, mine, networksFor, startChain, type TestChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";

const erc20 = parseAbi([
  "function approve(address spender, uint256 value) returns (bool)",
  "function transfer(address to, uint256 value) returns (bool)",
  "function transferFrom(address from, address to, uint256 value) returns (bool)",
]);
const multicall3 = parseAbi([
  "function aggregate3((address target, bool allowFailure, bytes callData)[] calls) returns ((bool success, bytes returnData)[])",
]);

/** The dust amount of USDC in this file, minor units. */
const DUST = 10n;

/** A chain with finality at its newest block, and a stranger with USDC and gas. */
async function makeFixture() {
  const chain = await startChain();
  const [{ assets } = { assets: [] }] = (await networksFor(chain)).chains;
  const dusty = assets.map((asset) => ({ ...asset, dust: String(DUST) }));
  const fixture = await makeMerchantFixture(chain, { change: { finality: { blocks: 1 }, assets: dusty } });
  const [stranger, relayer] = [await fundBuyer(chain), await fundBuyer(chain)];
  await fundGas(chain.client, [stranger.address, relayer.address]);
  await fixture.watch();
  return { chain, fixture, stranger, relayer, treasury: chain.keys.treasury.address };
}

/** Signs a transaction, whose bytes can be in a block on both sides of a reorg. */
async function signCall({ client }: TestChain, from: PrivateKeyAccount, to: Hex, data: Hex): Promise<Hex> {
  const fees = { gas: 5_000_000n, maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 1n };
  const nonce = await client.getTransactionCount({ address: from.address });
  return from.signTransaction({ ...fees, type: "eip1559", chainId: await client.getChainId(), nonce, to, data });
}

const signTransfer = (chain: TestChain, from: PrivateKeyAccount, to: Hex, amount: bigint) =>
  signCall(
    chain,
    from,
    chain.contracts.token,
    encodeFunctionData({ abi: erc20, functionName: "transfer", args: [to, amount] }),
  );

/** Includes signed transactions in one new block, in this order. */
async function include(chain: TestChain, ...signed: Hex[]): Promise<void> {
  await chain.client.setAutomine(false);
  for (const serializedTransaction of signed) await chain.client.sendRawTransaction({ serializedTransaction });
  await mine(chain);
  await chain.client.setAutomine(true);
}

/** Signs a transaction of `relayer` that moves each amount from `holder` to the treasury, as far as the allowance suffices. */
function signMoves(chain: TestChain, relayer: PrivateKeyAccount, holder: Hex, amounts: readonly bigint[]) {
  const { token, multicall } = chain.contracts;
  const calls = amounts.map((amount) => {
    const args = [holder, chain.keys.treasury.address, amount] as const;
    const callData = encodeFunctionData({ abi: erc20, functionName: "transferFrom", args });
    return { target: token, allowFailure: true, callData };
  });
  const data = encodeFunctionData({ abi: multicall3, functionName: "aggregate3", args: [calls] });
  return signCall(chain, relayer, multicall, data);
}

/** Signs an allowance of `holder` for Multicall3. */
function signAllowance(chain: TestChain, holder: PrivateKeyAccount, amount: bigint) {
  const { token, multicall } = chain.contracts;
  const data = encodeFunctionData({ abi: erc20, functionName: "approve", args: [multicall, amount] });
  return signCall(chain, holder, token, data);
}

/** Reads the blocks of a chain until all of them are booked. */
async function bookAll(chain: TestChain, fixture: MerchantFixture): Promise<void> {
  for (let pass = 0; pass < 3; pass += 1) {
    await fixture.watch();
    await mine(chain);
  }
  await fixture.watch();
}

const amountsOf = async ({ deps }: MerchantFixture) => (await listExceptions(deps, 100)).map(({ amount }) => amount);
const dustOf = ({ db }: MerchantFixture) => db.selectFrom("dust").select(["amount", "transfers", "group_id"]).execute();
const booked = async ({ db }: MerchantFixture, account: string) =>
  (await listBalances(db, { account }))[0]?.amount ?? 0n;

/** Returns by how much the treasury holds more than the ledger says. */
async function readDifference(chain: TestChain, { deps, db }: MerchantFixture): Promise<bigint | undefined> {
  expect(await checkLedger(db, { since: undefined })).toEqual([]);
  const lines = unwrap(await reconcileChain(deps, { chain: chain.id }));
  return lines.find(({ account }) => account === "treasury")?.difference;
}

/** The bookings whose money is no longer on the chain, as the runbook lists them. */
const listLost = ({ db }: MerchantFixture) =>
  db.selectFrom("observation").select("amount").where("booked", "=", true).where("orphaned", "=", true).execute();

test("a deposit in another block after each of two reorgs below the final height is booked once", async () => {
  const { chain, fixture, stranger, relayer, treasury } = await makeFixture();
  const deposit = await signTransfer(chain, stranger, treasury, 5_000_000n);
  // Its log moves the deposit's to another index.
  const other = await signTransfer(chain, relayer, stranger.address, 1n);
  let reorg = await prepareReorg(chain);
  await include(chain, deposit);
  await bookAll(chain, fixture);
  expect(await amountsOf(fixture)).toEqual([5_000_000n]);

  for (const transactions of [[other, deposit], [deposit]]) {
    await reorg();
    reorg = await prepareReorg(chain);
    await include(chain, ...transactions);
    await bookAll(chain, fixture);
    expect(await usdcBalance(chain, treasury)).toBe(5_000_000n);
    expect(await amountsOf(fixture)).toEqual([5_000_000n]);
    expect(await booked(fixture, "treasury")).toBe(5_000_000n);
    expect(await readDifference(chain, fixture)).toBe(0n);
    expect(await listLost(fixture)).toEqual([]);
  }
  expect((await fixture.deps.metrics.finalReorgs.get()).values).toMatchObject([{ value: 2 }]);
  const lines = (text: string) => fixture.lines.filter((line) => line.includes(text));
  expect(lines("movement matches no payment")).toHaveLength(1);
  expect(lines("a reorg has moved a booked movement to another block")).toHaveLength(2);
});

test("a dust deposit in another block after a reorg below the final height is added to its day once", async () => {
  const { chain, fixture, stranger, treasury } = await makeFixture();
  const deposit = await signTransfer(chain, stranger, treasury, 4n);
  let reorg = await prepareReorg(chain);
  await include(chain, deposit);
  await bookAll(chain, fixture);
  expect(await dustOf(fixture)).toEqual([{ amount: 4n, transfers: 1, group_id: null }]);
  const moveDeposit = async () => {
    await reorg();
    reorg = await prepareReorg(chain);
    await include(chain, deposit);
    await bookAll(chain, fixture);
    expect(await listLost(fixture)).toEqual([]);
    expect(await readDifference(chain, fixture)).toBe(0n);
    return dustOf(fixture);
  };
  expect(await moveDeposit()).toEqual([{ amount: 4n, transfers: 1, group_id: null }]);

  await chain.client.increaseTime({ seconds: 86_400 });
  await bookAll(chain, fixture);
  expect(await booked(fixture, "treasury")).toBe(4n);
  expect(await moveDeposit()).toMatchObject([{ amount: 4n, transfers: 1 }]);
  expect(await booked(fixture, "treasury")).toBe(4n);
});

test("a transaction that moves more money after a reorg below the final height adds what is new", async () => {
  const { chain, fixture, stranger, relayer, treasury } = await makeFixture();
  const amounts = [20n, 20n, 4n, 20n, 4n];
  const moves = await signMoves(chain, relayer, stranger.address, amounts);
  const [some, all] = [await signAllowance(chain, stranger, 44n), await signAllowance(chain, stranger, 1_000n)];
  const reorg = await prepareReorg(chain);
  await include(chain, some, moves);
  await bookAll(chain, fixture);
  expect(await amountsOf(fixture)).toEqual([20n, 20n]);
  expect(await dustOf(fixture)).toMatchObject([{ amount: 4n, transfers: 1 }]);

  await reorg();
  await include(chain, all, moves);
  await bookAll(chain, fixture);
  expect(await usdcBalance(chain, treasury)).toBe(68n);
  expect(await amountsOf(fixture)).toEqual([20n, 20n, 20n]);
  expect(await dustOf(fixture)).toMatchObject([{ amount: 8n, transfers: 2 }]);
  expect(await readDifference(chain, fixture)).toBe(0n);
});

test("a transaction that moves another amount after a reorg below the final height is new money, and an operator books the loss of the former", async () => {
  const { chain, fixture, stranger, relayer, treasury } = await makeFixture();
  const moves = await signMoves(chain, relayer, stranger.address, [30n, 20n]);
  const [more, less] = [await signAllowance(chain, stranger, 30n), await signAllowance(chain, stranger, 20n)];
  const reorg = await prepareReorg(chain);
  await include(chain, more, moves);
  await bookAll(chain, fixture);
  expect(await amountsOf(fixture)).toEqual([30n]);

  await reorg();
  await include(chain, less, moves);
  await bookAll(chain, fixture);
  expect(await usdcBalance(chain, treasury)).toBe(20n);
  expect(await amountsOf(fixture)).toEqual([30n, 20n]);
  expect(await readDifference(chain, fixture)).toBe(-30n);
  expect(await listLost(fixture)).toEqual([{ amount: 30n }]);

  const loss = { debit: "losses", credit: "treasury", asset: chain.asset, amount: 30n };
  unwrap(await correctLedger(fixture.deps, { actor: testActor, ...loss, reference: "OPS-1", note: "lost in a reorg" }));
  const [{ id } = { id: 0 }] = await listExceptions(fixture.deps, 1);
  unwrap(await bookException(fixture.deps, { actor: testActor, id, as: "losses", note: "lost in a reorg" }));
  expect(await amountsOf(fixture)).toEqual([20n]);
  expect(await readDifference(chain, fixture)).toBe(0n);
  expect(await booked(fixture, "losses")).toBe(0n);
});

test("an equal deposit of another transaction after a reorg below the final height is new money", async () => {
  const { chain, fixture, stranger, treasury } = await makeFixture();
  const [deposit, allowance] = [
    await signTransfer(chain, stranger, treasury, 30n),
    await signAllowance(chain, stranger, 1n),
  ];
  const reorg = await prepareReorg(chain);
  await include(chain, deposit);
  await bookAll(chain, fixture);

  await reorg();
  // The stranger has used the nonce of the first deposit, which can never return.
  await include(chain, allowance);
  await include(chain, await signTransfer(chain, stranger, treasury, 30n));
  await bookAll(chain, fixture);
  expect(await amountsOf(fixture)).toEqual([30n, 30n]);
  expect(await readDifference(chain, fixture)).toBe(-30n);
  expect(await listLost(fixture)).toEqual([{ amount: 30n }]);
});
