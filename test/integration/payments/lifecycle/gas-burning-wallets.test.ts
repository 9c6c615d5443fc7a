import { expect, test } from "vitest";
import { createVerify } from "../../../../payments/lifecycle/verify-batches.ts";
import { fundBuyer, mine, startChain, type TestChain, transfersTo } from "../../../support/evm-chain.ts";
import {
  armBurners,
  confirmAsContractWallet,
  deployBlockBurner,
  deployPriceBurner,
  type GasBurner,
} from "../../../support/gas-burners.ts";
import { type MerchantFixture, makeMerchantFixture } from "../../../support/merchant-fixture.ts";

const DAY_MS = 24 * 3_600_000;
/** Maximum gas that one transaction of a contract wallet can burn by default. */
const MOST_GAS = 1_060_000n;

const transactionsOf = (fixture: MerchantFixture) =>
  fixture.db.selectFrom("transaction").selectAll().orderBy("created_at").execute();
const gasOf = async (fixture: MerchantFixture) =>
  (await transactionsOf(fixture)).reduce((sum, { gas_used }) => sum + (gas_used ?? 0n), 0n);

async function deployMany(chain: TestChain, salts: readonly bigint[]): Promise<GasBurner[]> {
  const burners: GasBurner[] = [];
  for (const salt of salts) burners.push(await deployBlockBurner(chain, { salt }));
  return burners;
}

/** Creates a payment by a gas-burning wallet that verification accepts. Returns its id. */
async function accept(fixture: MerchantFixture, chain: TestChain, burner: GasBurner): Promise<string> {
  const paymentId = await fixture.create();
  await armBurners(chain, [burner]);
  const attempt = await confirmAsContractWallet(fixture, paymentId, burner);
  await fixture.verify(attempt);
  expect(await fixture.verificationResult(attempt)).toBe("verified");
  return paymentId;
}

/** Runs lanes and watcher `rounds` times, 15 seconds apart. */
async function run(
  fixture: MerchantFixture,
  chain: TestChain,
  burners: readonly GasBurner[],
  rounds = 20,
): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    await armBurners(chain, burners);
    await fixture.relay();
    await fixture.watch();
    fixture.clock.advance(15_000);
  }
}

test("a wallet that accepts signatures only at a gas price of zero is refused, and nothing is sent", async () => {
  const chain = await startChain({ lanes: 2 });
  const fixture = await makeMerchantFixture(chain);
  const burner = await deployPriceBurner(chain);
  const attempts: string[] = [];
  for (let count = 0; count < 3; count += 1)
    attempts.push(await confirmAsContractWallet(fixture, await fixture.create(), burner));
  await fixture.verify(...attempts);
  for (const attempt of attempts)
    expect(await fixture.verificationResult(attempt)).toEqual({ refused: expect.stringContaining("would fail") });
  await fixture.relay();
  expect(await transactionsOf(fixture)).toEqual([]);
});

test("a wallet that burns gas despite a good simulation gets three transactions, and its payment fails once the last one is final", async () => {
  const chain = await startChain({ lanes: 2 });
  const fixture = await makeMerchantFixture(chain, { change: { finality: { blocks: 5 } } });
  const burner = await deployBlockBurner(chain);
  const paymentId = await accept(fixture, chain, burner);
  await run(fixture, chain, [burner]);
  const burnt = await transactionsOf(fixture);
  expect(burnt).toHaveLength(3);
  expect(await gasOf(fixture)).toBeLessThanOrEqual(3n * MOST_GAS);
  // The last transaction is not final: after a reorg it could still move the money.
  expect(burnt.at(-1)?.state).toBe("included");
  expect((await fixture.status(paymentId)).state).toBe("processing");

  await mine(chain, 5);
  await fixture.watch();
  expect((await transactionsOf(fixture)).map(({ state }) => state)).toEqual(["final", "final", "final"]);
  expect(await fixture.status(paymentId)).toMatchObject({ state: "failed" });
  expect(await fixture.transfers()).toMatchObject([{ state: "ended" }]);
  expect(fixture.announced).toContain(paymentId);
  const booked = await fixture.db.selectFrom("ledger_group").select("kind").where("kind", "=", "gas").execute();
  expect(booked).toHaveLength(3);
  const counted = (await fixture.deps.metrics.gasWithoutTransfer.get()).values;
  expect(counted).toMatchObject([{ labels: { chain: chain.id }, value: Number(await gasOf(fixture)) }]);
});

/** Accepts every signature when 100,000 gas are left, and burns all others before. */
const GREEDY_CODE = "0x5b620186a05a11600057631626ba7e60e01b60005260206000f3";

test("a wallet that pays, and takes nearly all gas of each transaction, is barred when it has burned its limit", async () => {
  const chain = await startChain({ lanes: 2 });
  const fixture = await makeMerchantFixture(chain);
  const burner = await deployBlockBurner(chain);
  await chain.client.setCode({ address: burner.address, bytecode: GREEDY_CODE });
  const payments: string[] = [];
  const pay = async () => {
    const id = await fixture.create(1n);
    const attemptId = await confirmAsContractWallet(fixture, id, burner);
    await fixture.verify(attemptId);
    await fixture.relay();
    await fixture.watch();
    payments.push(id);
    return fixture.verificationResult(attemptId);
  };
  // Half of the gas limit of each transaction is the wallet's.
  for (let count = 0; count < 6; count += 1) expect(await pay()).toBe("verified");
  for (const id of payments) expect((await fixture.status(id)).state).toBe("succeeded");
  expect(await pay()).toEqual({ refused: expect.stringContaining("took too much gas") });
  const burned = await fixture.db.selectFrom("burned_gas").selectAll().execute();
  expect(burned).toHaveLength(6);
  const [counted] = (await fixture.deps.metrics.gasWithoutTransfer.get()).values;
  expect(counted?.value).toBe(burned.reduce((sum, { gas }) => sum + Number(gas), 0));
  expect(counted?.value).toBeLessThan(Number(await gasOf(fixture)) - burned.length * 400_000);

  // Each transaction moved the money, so none counts as one that failed.
  fixture.clock.advance(DAY_MS);
  await pay();
  expect((await fixture.status(payments.at(-1) ?? "")).state).toBe("succeeded");
});

test("money moved by the authorization of a failed payment is booked as an exception", async () => {
  const chain = await startChain({ lanes: 2 });
  const fixture = await makeMerchantFixture(chain);
  const burner = await deployBlockBurner(chain);
  const paymentId = await accept(fixture, chain, burner);
  await run(fixture, chain, [burner], 10);
  expect((await fixture.status(paymentId)).state).toBe("failed");
  await armBurners(chain, [burner], true);
  const [first] = await transactionsOf(fixture);
  const call = await chain.client.getTransaction({ hash: first?.hash as `0x${string}` });
  await chain.client.sendTransaction({ to: call.to, data: call.input, gas: 300_000n });
  await fixture.watch();
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
  expect((await fixture.status(paymentId)).state).toBe("failed");
  const groups = await fixture.db.selectFrom("ledger_group").select("kind").where("kind", "=", "unmatched").execute();
  expect(groups).toHaveLength(1);
});

test("a reorg that removes a gas-burning transaction also removes it from the payer's burned gas", async () => {
  const chain = await startChain({ lanes: 2 });
  const fixture = await makeMerchantFixture(chain, { change: { finality: { blocks: 20 } } });
  const burner = await deployBlockBurner(chain);
  const paymentId = await accept(fixture, chain, burner);
  // The watcher broadcasts again after seconds, which a slow machine needs for the other steps.
  fixture.clock.stop();
  const before = await chain.client.snapshot();
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.db.selectFrom("burned_gas").selectAll().execute()).toHaveLength(1);
  await chain.client.revert({ id: before });
  await mine(chain, 3);
  await fixture.watch();
  expect(await fixture.db.selectFrom("burned_gas").selectAll().execute()).toHaveLength(0);
  // The watcher broadcasts the same bytes again, and this time the wallet accepts the signature.
  await armBurners(chain, [burner], true);
  fixture.clock.advance(10_000);
  await fixture.watch();
  await mine(chain, 20);
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
});

test("a payer that burned gas gets no options and no transactions for a day, and can pay again afterwards", async () => {
  const chain = await startChain({ lanes: 2 });
  const fixture = await makeMerchantFixture(chain);
  const burner = await deployBlockBurner(chain, { amount: 10_000_000n });
  const first = await accept(fixture, chain, burner);
  const second = await accept(fixture, chain, burner);
  const open = await fixture.create();
  const [option] = await fixture.offer(open, burner);
  await run(fixture, chain, [burner]);
  expect(await transactionsOf(fixture)).toHaveLength(3);
  // Both payments share the payer's limit of three transactions.
  for (const id of [first, second]) expect((await fixture.status(id)).state).toBe("failed");

  const later = await fixture.create(100n, { expiresAt: new Date(fixture.clock.now().getTime() + 3_600_000) });
  await expect(fixture.offer(later, burner)).rejects.toThrow("rate_limited the account cannot pay here for now");
  expect(option).toBeDefined();
  const other = await fundBuyer(chain);
  expect(await fixture.offer(later, burner, other)).toHaveLength(1);

  fixture.clock.advance(DAY_MS);
  const afterwards = await accept(fixture, chain, burner);
  await armBurners(chain, [burner], true);
  await fixture.relay();
  await fixture.watch();
  expect((await fixture.status(afterwards)).state).toBe("succeeded");
});

test("wallets with the same code burn at most the limit per code in an hour, and all wallets together at most the limit per chain", async () => {
  const chain = await startChain({ lanes: 2 });
  const fixture = await makeMerchantFixture(chain, {
    change: { walletGasPerCode: 2_500_000, walletGasPerHour: 4_500_000 },
  });
  const clones = await deployMany(chain, [0n, 0n, 0n, 0n]);
  for (const clone of clones) await accept(fixture, chain, clone);
  await run(fixture, chain, clones, 8);
  expect(await transactionsOf(fixture)).toHaveLength(2);
  expect(await gasOf(fixture)).toBeLessThanOrEqual(2_500_000n);

  const clone = await deployBlockBurner(chain);
  const refused = await confirmAsContractWallet(fixture, await fixture.create(), clone);
  await armBurners(chain, [clone]);
  await fixture.verify(refused);
  expect(await fixture.verificationResult(refused)).toEqual({
    refused: expect.stringContaining("contract wallets like this one"),
  });

  const others = [await deployBlockBurner(chain, { salt: 1n }), await deployBlockBurner(chain, { salt: 2n })];
  for (const other of others) await accept(fixture, chain, other);
  await run(fixture, chain, others, 8);
  expect(await transactionsOf(fixture)).toHaveLength(4);
  expect(await gasOf(fixture)).toBeLessThanOrEqual(4_500_000n);
  const last = await deployBlockBurner(chain, { salt: 3n });
  const late = await confirmAsContractWallet(fixture, await fixture.create(), last);
  await fixture.verify(late);
  expect(await fixture.verificationResult(late)).toEqual({
    refused: expect.stringContaining("contract wallets like this one"),
  });

  // Payments from plain keys are not limited.
  expect((await fixture.status(await fixture.pay(await fundBuyer(chain)))).state).toBe("succeeded");
});

test.each([1, 2])(
  "with %i lane(s), a plain key's transfer is in its lane's next transaction, however many wallets wait",
  async (lanes) => {
    const chain = await startChain({ lanes });
    const fixture = await makeMerchantFixture(chain);
    const burners = await deployMany(chain, [0n, 1n, 2n]);
    for (const burner of burners) await accept(fixture, chain, burner);
    const honest = await fixture.create();
    await fixture.verify(await fixture.attempt(honest, await fundBuyer(chain)));
    await armBurners(chain, burners);
    await chain.client.setAutomine(false);
    await fixture.relay();
    const sent = await fixture.db
      .selectFrom("transfer as f")
      .select(["f.payment_id", "f.lane_id", "f.lane_nonce", "f.smart_wallet"])
      .where("f.state", "=", "assigned")
      .execute();
    expect(sent.find(({ payment_id }) => payment_id === honest)).toMatchObject({ lane_nonce: 0 });
    const wallets = sent.filter(({ smart_wallet }) => smart_wallet);
    if (lanes === 1) expect(wallets, "one at a time, behind plain keys").toHaveLength(1);
    const own = `${chain.id}:${chain.keys.lanes.at(-1)?.address.toLowerCase()}`;
    for (const { lane_id } of wallets) expect(lane_id).toBe(own);
  },
);

test("an honest wallet pays at the current gas price, and its second payment waits for the first", async () => {
  const chain = await startChain({ lanes: 2 });
  const fixture = await makeMerchantFixture(chain);
  const wallet = await deployBlockBurner(chain, { amount: 10_000_000n });
  const payments = [await accept(fixture, chain, wallet), await accept(fixture, chain, wallet)];
  await armBurners(chain, [wallet], true);
  await chain.client.setAutomine(false);
  await fixture.relay();
  expect((await fixture.transfers()).map(({ state }) => state).toSorted()).toEqual(["assigned", "ready"]);
  await chain.client.setAutomine(true);
  await mine(chain);
  await fixture.watch();
  await fixture.relay();
  await fixture.watch();
  for (const id of payments) expect((await fixture.status(id)).state).toBe("succeeded");
  expect(await fixture.db.selectFrom("burned_gas").selectAll().execute()).toEqual([]);
});

test.each([
  ["one after the other", 1],
  ["by two concurrent processes", 2],
])("of three payments by an account that can afford one, one is accepted when verified %s", async (_how, processes) => {
  const chain = await startChain({ lanes: 2 });
  const fixture = await makeMerchantFixture(chain);
  const buyer = await fundBuyer(chain, 1_900_000n);
  const attempts: string[] = [];
  for (let count = 0; count < 3; count += 1) attempts.push(await fixture.attempt(await fixture.create(), buyer));
  const verifiers = Array.from({ length: processes }, () => createVerify(fixture.deps));
  await Promise.all(attempts.map((attempt, index) => verifiers[index % processes]?.(attempt)));
  const results = await Promise.all(attempts.map(fixture.verificationResult));
  expect(results.filter((result) => result === "verified")).toHaveLength(1);
  const refused = { refused: expect.stringContaining("other payments") };
  expect(results.filter((result) => result !== "verified")).toEqual([refused, refused]);
});

test("payments that an account can afford are all accepted, even while the watcher has not read the first ones' block", async () => {
  const chain = await startChain({ lanes: 2 });
  const fixture = await makeMerchantFixture(chain);
  const buyer = await fundBuyer(chain, 3_000_000n);
  const [one, two, three] = [await fixture.create(), await fixture.create(), await fixture.create()];
  const verifiers = [createVerify(fixture.deps), createVerify(fixture.deps)];
  const attempts = [await fixture.attempt(one, buyer), await fixture.attempt(two, buyer)];
  await Promise.all(attempts.map((attempt, index) => verifiers[index]?.(attempt)));
  for (const id of [one, two]) expect((await fixture.status(id)).state).toBe("processing");
  await fixture.relay();
  // Two dollars have left the account, and the watcher has not read that block: they are not deducted twice.
  const last = await fixture.attempt(three, buyer);
  await fixture.verify(last);
  expect(await fixture.verificationResult(last)).toBe("verified");
  await fixture.relay();
  await fixture.watch();
  for (const id of [one, two, three]) expect((await fixture.status(id)).state).toBe("succeeded");
});
