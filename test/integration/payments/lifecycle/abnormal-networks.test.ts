import { getAddress, type Hex, keccak256, parseAbi, parseGwei, slice, toHex } from "viem";
import { expect, test } from "vitest";
import { operator } from "../../../../local/chain-client.ts";
import { circleContract, type Deployable } from "../../../../local/circle-artifacts.ts";
import { correctLedger } from "../../../../payments/accounting/corrections.ts";
import { reconcileChain } from "../../../../payments/accounting/reconcile-chain.ts";
import { readIssuerActions } from "../../../../transfers/evm/watch-tokens.ts";
import { prepareReorg } from "../../../support/chain-reorg.ts";
import {
  fundBuyer,
  fundBuyers,
  mine,
  sendUsdc,
  startChain,
  type TestChain,
  usdcBalance,
} from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { readSystemStatus } from "../../../support/read-system-status.ts";
import { testActor } from "../../../support/test-actor.ts";

const adminAbi = parseAbi([
  "function blacklist(address)",
  "function unBlacklist(address)",
  "function pause()",
  "function unpause()",
  "function upgradeTo(address)",
]);
const UNIT = 1_000_000n;
/** Where USDC's proxy stores the address of its code. */
const ZEPPELIN_SLOT = keccak256(toHex("org.zeppelinos.proxy.implementation"));

/** Calls a function of USDC's proxy as the account that may. */
async function administer(chain: TestChain, functionName: string, args: Hex[] = [], account: unknown = operator) {
  const call = { address: chain.contracts.token, abi: adminAbi, functionName, args, account };
  await chain.client.waitForTransactionReceipt({ hash: await chain.client.writeContract(call as never) });
}

/** Repeats the workers' steps as they run in six minutes. */
async function letWorkersRun(fixture: MerchantFixture) {
  for (let round = 0; round < 6; round += 1) {
    fixture.clock.advance(61_000);
    await fixture.relay();
    await fixture.watch();
  }
}

/** Settles payments, and expects the merchant to have their money, and ledger and chain to agree. */
async function expectPaidOut(chain: TestChain, fixture: MerchantFixture, ids: readonly string[], units: bigint) {
  const settlements = await Promise.all(ids.map((id) => fixture.settlementOf(id)));
  await fixture.settle(...settlements.map(({ id }) => id));
  await letWorkersRun(fixture);
  expect(await usdcBalance(chain, fixture.destination)).toBe(units * UNIT);
  await expectEqualBalances(chain, fixture);
}

async function expectEqualBalances(chain: TestChain, fixture: MerchantFixture) {
  const lines = unwrap(await reconcileChain(fixture.deps, { chain: chain.id }));
  expect(lines.filter(({ difference }) => difference !== 0n)).toEqual([]);
}

async function heldOf(fixture: MerchantFixture) {
  const { heldPayments, heldPayouts } = await readSystemStatus(fixture.deps);
  return { payments: heldPayments[0]?.count, payouts: heldPayouts[0]?.count };
}

/** Reads what the issuer has done, as the workers do every few minutes. Returns the gauges of the only token. */
async function readGauges(fixture: MerchantFixture) {
  const { deps, evm } = fixture;
  await readIssuerActions(deps, evm);
  const { tokenUpgraded, tokenPaused, treasuryBlocked } = deps.metrics;
  const read = async (gauge: typeof tokenPaused) => (await gauge.get()).values[0]?.value;
  return {
    upgraded: await read(tokenUpgraded),
    paused: await read(tokenPaused),
    treasuryBlocked: await read(treasuryBlocked),
  };
}

/** Creates a payment whose authorization is verified and not sent yet. */
async function verified(chain: TestChain, fixture: MerchantFixture) {
  const buyer = await fundBuyer(chain, 5n * UNIT);
  const id = await fixture.create();
  await fixture.verify(await fixture.attempt(id, buyer));
  return { id, buyer };
}

const finality = { blocks: 1 };

test("a fee above the ceiling holds payments without spending gas, reports the lane, and pays all when the fee falls", async () => {
  const chain = await startChain();
  const fees = { maxFeePerGas: parseGwei("10").toString(), priorityFeePerGas: parseGwei("1").toString() };
  const fixture = await makeMerchantFixture(chain, { change: { finality, fees } });
  const [lane] = chain.keys.lanes;
  const { id } = await verified(chain, fixture);
  const gas = await chain.client.getBalance({ address: lane?.address ?? "0x" });
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("5000") });
  await mine(chain);
  await fixture.watch();
  await fixture.relay();
  expect(await chain.client.getBalance({ address: lane?.address ?? "0x" })).toBe(gas);
  expect((await readSystemStatus(fixture.deps)).lanes).toMatchObject([{ held: true }]);
  expect((await fixture.status(id)).state).toBe("processing");

  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("1") });
  await mine(chain);
  await letWorkersRun(fixture);
  expect((await readSystemStatus(fixture.deps)).lanes).toMatchObject([{ held: false }]);
  expect((await fixture.status(id)).state).toBe("succeeded");
  await expectPaidOut(chain, fixture, [id], 1n);
});

test("a paused token holds payments and payouts, is reported, and both continue when it is unpaused", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain, { change: { finality } });
  const earlier = await fixture.pay(await fundBuyer(chain));
  const { id } = await verified(chain, fixture);
  expect(await readGauges(fixture)).toEqual({ upgraded: 0, paused: 0, treasuryBlocked: 0 });
  await administer(chain, "pause");
  await fixture.settle((await fixture.settlementOf(earlier)).id);
  await letWorkersRun(fixture);
  expect(await heldOf(fixture)).toEqual({ payments: 1, payouts: 1 });
  expect(await readGauges(fixture)).toEqual({ upgraded: 0, paused: 1, treasuryBlocked: 0 });
  expect(await usdcBalance(chain, chain.keys.treasury.address)).toBe(UNIT);
  await expectEqualBalances(chain, fixture);

  await administer(chain, "unpause");
  await letWorkersRun(fixture);
  expect(await heldOf(fixture)).toEqual({ payments: 0, payouts: 0 });
  expect(await readGauges(fixture)).toMatchObject({ paused: 0 });
  expect((await fixture.status(id)).state).toBe("succeeded");
  await expectPaidOut(chain, fixture, [id], 2n);
});

test("a token that is upgraded is reported, and payments before and after the upgrade are paid out", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain, { change: { finality } });
  const { id } = await verified(chain, fixture);
  expect(await readGauges(fixture)).toMatchObject({ upgraded: 0 });
  await administer(chain, "upgradeTo", [await deployNewUsdc(chain)], await openProxyAdmin(chain));
  expect(await readGauges(fixture)).toEqual({ upgraded: 1, paused: 0, treasuryBlocked: 0 });
  const report = fixture.lines.find((line) => line.includes("changed the code of a token"));
  expect(JSON.parse(report ?? "{}")).toMatchObject({ level: "error", asset: chain.asset });
  await letWorkersRun(fixture);
  expect((await fixture.status(id)).state).toBe("succeeded");
  const after = await fixture.pay(await fundBuyer(chain));
  expect((await fixture.status(after)).state).toBe("succeeded");
  await expectPaidOut(chain, fixture, [id, after], 2n);
  expect(fixture.lines.filter((line) => line.includes("changed the code of a token"))).toHaveLength(1);
});

test("an upgrade that removes the token's authorizations is reported as a mismatch, and no payment is lost by it", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain, { change: { finality } });
  const { id } = await verified(chain, fixture);
  await readGauges(fixture);
  const admin = await openProxyAdmin(chain);
  const before = await chain.client.getStorageAt({ address: chain.contracts.token, slot: ZEPPELIN_SLOT });
  const old = await deploy(chain, circleContract("v1/FiatTokenV1.sol/FiatTokenV1"));
  await administer(chain, "upgradeTo", [old], admin);
  await letWorkersRun(fixture);
  expect(await readGauges(fixture)).toMatchObject({ upgraded: 1 });
  const report = fixture.lines.find((line) => line.includes("changed the code of a token"));
  expect(JSON.parse(report ?? "{}").mismatch).toContain("does not match");
  expect(await heldOf(fixture)).toEqual({ payments: 1, payouts: 0 });
  await expectEqualBalances(chain, fixture);

  await administer(chain, "upgradeTo", [slice(before ?? "0x", 12)], admin);
  await letWorkersRun(fixture);
  expect(await readGauges(fixture)).toMatchObject({ upgraded: 0 });
  expect((await fixture.status(id)).state).toBe("succeeded");
  await expectPaidOut(chain, fixture, [id], 1n);
});

test("a payer whom the issuer blocks after the confirm pays nothing, costs no gas, and is reported", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain, { change: { finality } });
  const { id, buyer } = await verified(chain, fixture);
  const other = await verified(chain, fixture);
  await administer(chain, "blacklist", [buyer.address]);
  await letWorkersRun(fixture);
  expect(await heldOf(fixture)).toEqual({ payments: 1, payouts: 0 });
  const [held] = (await fixture.transfers()).filter(({ state }) => state === "ready");
  expect(held).toMatchObject({ payment_id: id, last_error: expect.stringContaining("blacklisted") });
  expect((await fixture.status(other.id)).state).toBe("succeeded");
  expect(await usdcBalance(chain, buyer.address)).toBe(5n * UNIT);
  await expectPaidOut(chain, fixture, [other.id], 1n);
});

test("a merchant's address that the issuer blocks holds its payout only, and is paid when it is unblocked", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain, { change: { finality } });
  const id = await fixture.pay(await fundBuyer(chain));
  await administer(chain, "blacklist", [fixture.destination]);
  await fixture.settle((await fixture.settlementOf(id)).id);
  await letWorkersRun(fixture);
  expect(await heldOf(fixture)).toEqual({ payments: 0, payouts: 1 });
  expect(await usdcBalance(chain, chain.keys.treasury.address)).toBe(UNIT);
  await expectEqualBalances(chain, fixture);
  await administer(chain, "unBlacklist", [fixture.destination]);
  await letWorkersRun(fixture);
  await expectPaidOut(chain, fixture, [id], 1n);
  expect(await heldOf(fixture)).toEqual({ payments: 0, payouts: 0 });
});

test("a treasury that the issuer blocks is reported", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  await administer(chain, "blacklist", [chain.keys.treasury.address]);
  expect(await readGauges(fixture)).toEqual({ upgraded: 0, paused: 0, treasuryBlocked: 1 });
});

test("a chain that halts for an hour is reported, and when it continues valid signatures are used and expired ones move no money", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain, { change: { finality, maxHeadAgeMs: 900_000 } });
  const [first, second] = await fundBuyers(chain, 2);
  if (!first || !second) throw new Error("no buyers");
  await fixture.watch();
  await chain.client.setAutomine(false);
  const sent = await fixture.create();
  await fixture.verify(await fixture.attempt(sent, first));
  await fixture.relay();
  for (let minute = 0; minute < 60; minute += 10) {
    fixture.clock.advance(600_000);
    await fixture.watch();
  }
  const { chains } = await readSystemStatus(fixture.deps);
  expect(chains[0]?.lagSeconds).toBeGreaterThan(3_000);
  expect((await fixture.status(sent)).state).toBe("processing");
  const waiting = await fixture.create();
  await fixture.verify(await fixture.attempt(waiting, second));

  await chain.client.increaseTime({ seconds: 3_600 });
  await chain.client.setAutomine(true);
  await mine(chain);
  await letWorkersRun(fixture);
  expect((await fixture.status(waiting)).state).toBe("succeeded");
  // Its signature ended during the halt. The transaction that was in the pool moved nothing.
  expect((await fixture.status(sent)).state).toBe("expired");
  expect(await usdcBalance(chain, first.address)).toBe(1_000n * UNIT);
  await expectPaidOut(chain, fixture, [waiting], 1n);
});

test("a reorg below the final height that makes a payment impossible is counted, keeps it succeeded, and its loss is booked", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain, { change: { finality } });
  const buyer = await fundBuyer(chain, UNIT);
  await chain.client.setBalance({ address: buyer.address, value: 10n ** 18n });
  const id = await fixture.create();
  await fixture.verify(await fixture.attempt(id, buyer));
  await fixture.watch();
  const reorg = await prepareReorg(chain);
  await fixture.relay();
  await fixture.watch();
  expect((await fixture.status(id)).state).toBe("succeeded");

  await reorg();
  // In the new history the payer spends the money before our transaction can land again.
  await sendUsdc(chain, buyer, operator.address, UNIT);
  await letWorkersRun(fixture);
  expect((await fixture.status(id)).state).toBe("succeeded");
  expect((await fixture.deps.metrics.finalReorgs.get()).values).toMatchObject([
    { labels: { chain: chain.id }, value: 1 },
  ]);
  expect(fixture.lines.join("\n")).toContain("reorg reverted final blocks");
  const missing = unwrap(await reconcileChain(fixture.deps, { chain: chain.id })).filter(
    ({ difference }) => difference !== 0n,
  );
  expect(missing).toMatchObject([{ account: "treasury", asset: chain.asset, difference: -UNIT }]);

  const loss = { debit: "losses", credit: "treasury", asset: chain.asset, amount: UNIT };
  unwrap(await correctLedger(fixture.deps, { actor: testActor, ...loss, reference: "OPS-1", note: "lost in a reorg" }));
  await expectEqualBalances(chain, fixture);
});

/** The account that can upgrade the local USDC, with gas. */
async function openProxyAdmin({ client }: TestChain) {
  const admin = getAddress("0x000000000000000000000000000000000000ad01");
  await client.impersonateAccount({ address: admin });
  await client.setBalance({ address: admin, value: 10n ** 18n });
  return admin;
}

async function deploy({ client }: TestChain, { abi, bytecode }: Deployable): Promise<Hex> {
  const hash = await client.deployContract({ abi, bytecode, args: [], account: operator });
  const { contractAddress } = await client.waitForTransactionReceipt({ hash });
  if (!contractAddress) throw new Error("the contract was not deployed");
  return contractAddress;
}

/** Deploys USDC 2.2 with a library of its own, so that its code differs from the token's. */
async function deployNewUsdc(chain: TestChain): Promise<Hex> {
  const SignatureChecker = await deploy(chain, circleContract("util/SignatureChecker.sol/SignatureChecker"));
  return deploy(chain, circleContract("v2/FiatTokenV2_2.sol/FiatTokenV2_2", { SignatureChecker }));
}
