import { sql } from "kysely";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { isTransient } from "../../../../payments/is-transient.ts";
import { createVerify } from "../../../../payments/lifecycle/verify-batches.ts";
import { fundBuyer, fundBuyers, sendUsdc, startChain } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { confirmAsContractWallet, deployPriceBurner } from "../../../support/gas-burners.ts";
import { makeMerchantFixture, signOption, unwrap } from "../../../support/merchant-fixture.ts";
import { transientError } from "../../../support/test-queues.ts";
import { waitFor } from "../../../support/wait-for.ts";

/** Locks rows by a statement in another session until the returned function is called. */
async function lockRows(url: string, statement: string, values: unknown[]): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("begin");
  await client.query(statement, values);
  let isOpen = true;
  const release = async () => {
    if (isOpen) await client.end();
    isOpen = false;
  };
  onTestFinished(release);
  return release;
}

test.each([
  ["payment", "select from payment where id = $1 for update"],
  ["payer", "select lock_payers(array(select chain || ' ' || payer from payment_option where payment_id = $1))"],
])("a %s that another session has locked keeps no attempt of other payments waiting", async (_name, statement) => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const buyers = await fundBuyers(chain, 4);
  const ids = await Promise.all(buyers.map(() => fixture.create()));
  const attempts = await Promise.all(buyers.map((buyer, index) => fixture.attempt(ids[index] ?? "", buyer)));
  const [locked = "", ...others] = attempts;
  const release = await lockRows(fixture.databaseUrl, statement, [ids[0]]);
  const verify = createVerify({ ...fixture.deps, isTransient });
  const ends = await Promise.allSettled(attempts.map(verify));
  expect(ends.map(({ status }) => status)).toEqual(["rejected", ...others.map(() => "fulfilled")]);
  expect(await Promise.all(others.map(fixture.verificationResult))).toEqual(others.map(() => "verified"));
  expect(await fixture.verificationResult(locked)).toBe("waiting");
  await release();
  await verify(locked);
  expect(await fixture.verificationResult(locked)).toBe("verified");
});

test("a second call for an attempt that is being verified returns at once, and a call after an error verifies it again", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const attempt = await fixture.attempt(await fixture.create(), await fundBuyer(chain));
  const { verifier } = fixture.deps;
  const hanging = Promise.withResolvers<never>();
  let calls = 0;
  const verify = createVerify({
    ...fixture.deps,
    isTransient,
    verifier: { ...verifier, verify: (...args) => (calls++ === 0 ? hanging.promise : verifier.verify(...args)) },
  });
  const first = verify(attempt);
  await waitFor(() => calls === 1, { within: 10_000, what: "the verifier" });
  expect(await verify(attempt)).toBe("done");
  expect(await fixture.verificationResult(attempt)).toBe("waiting");
  const failed = expect(first).rejects.toThrow("does not answer");
  hanging.reject(transientError());
  await failed;
  await verify(attempt);
  expect(await fixture.verificationResult(attempt)).toBe("verified");
});

test("a database that answers no statement in time fails a batch once, and not again for each of its attempts", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const buyers = await fundBuyers(chain, 4);
  const attempts = await Promise.all(buyers.map(async (buyer) => fixture.attempt(await fixture.create(), buyer)));
  await sql`
    create function cancel() returns trigger language plpgsql as $$
      begin raise exception 'canceling statement due to statement timeout' using errcode = '57014'; end $$`.execute(
    fixture.db,
  );
  await sql`create trigger canceled before insert on transfer execute function cancel()`.execute(fixture.db);
  let checks = 0;
  const { verifier } = fixture.deps;
  const counted: typeof verifier = {
    ...verifier,
    verify: (...args) => {
      checks += 1;
      return verifier.verify(...args);
    },
  };
  const verify = createVerify({ ...fixture.deps, verifier: counted, isTransient });
  const ends = await Promise.allSettled(attempts.map(verify));
  expect(ends.map(({ status }) => status)).toEqual(attempts.map(() => "rejected"));
  expect(checks).toBe(1);
});

/** Bytecode of a wallet that accepts no signature. */
const REFUSES = "0x60006000fd";
const GARBAGE = 200;

test("a plain key's attempt is verified while two hundred garbage confirms of contract wallets wait for a slow endpoint", async () => {
  const chain = await startChain({ lanes: 2 });
  const proxy = await startFaultProxy({ target: chain.url });
  // Responses are held back for longer than a call may take on a slow machine.
  const fixture = await makeMerchantFixture(chain, { rpcUrls: [proxy.url], change: { rpcTimeoutMs: 600_000 } });
  const wallets = await fundBuyers(chain, GARBAGE);
  await Promise.all(wallets.map(({ address }) => chain.client.setCode({ address, bytecode: REFUSES })));
  const garbage: string[] = [];
  for (let from = 0; from < GARBAGE; from += 20) {
    const paymentId = await fixture.create();
    const options = await fixture.offer(paymentId, ...wallets.slice(from, from + 20));
    const results = [{ type: "walletRpc" as const, data: [`0x${"ab".repeat(65)}`] }];
    const answers = await Promise.all(options.map(({ id }) => fixture.confirm(paymentId, id, results)));
    garbage.push(...answers.flatMap((answer) => unwrap(answer).attemptId ?? []));
  }
  expect(garbage).toHaveLength(GARBAGE);
  const honest = await fixture.attempt(await fixture.create(), await fundBuyer(chain));

  // Calls with a gas price are simulations for contract wallets. Their answers are held back.
  const gate = Promise.withResolvers<void>();
  onTestFinished(() => gate.resolve());
  let held = 0;
  proxy.onAnswer((method, params) => {
    const [request] = params as { maxFeePerGas?: string }[];
    if (method !== "eth_call" || request?.maxFeePerGas === undefined) return undefined;
    held += 1;
    return gate.promise;
  });
  const verify = createVerify(fixture.deps);
  const outstanding = Promise.all(garbage.map(verify));
  await waitFor(() => held > 0 || undefined, { within: 30_000, what: "a simulation for a contract wallet" });
  await verify(honest);
  expect(await fixture.verificationResult(honest)).toBe("verified");
  expect(fixture.enqueued.filter(({ queue }) => queue === "relay-transfers")).toHaveLength(1);
  // Only the first few simulations have started.
  expect(held).toBeLessThanOrEqual(16);
  expect(await Promise.all(garbage.map(fixture.verificationResult))).toEqual(Array(GARBAGE).fill("waiting"));

  const before = proxy.calls["eth_call"] ?? 0;
  gate.resolve();
  await outstanding;
  for (const attempt of garbage)
    expect(await fixture.verificationResult(attempt)).toMatchObject({ refused: expect.any(String) });
  // One call for each attempt, and three for each batch of sixteen: codes, code hashes and balances.
  expect((proxy.calls["eth_call"] ?? 0) - before).toBeLessThanOrEqual(GARBAGE + 3 * Math.ceil(GARBAGE / 16) + 3);
});

test("a contract wallet waits for at most one confirm of another payer, however many confirms that payer has", async () => {
  const chain = await startChain({ lanes: 2 });
  const proxy = await startFaultProxy({ target: chain.url });
  const fixture = await makeMerchantFixture(chain, { rpcUrls: [proxy.url] });
  const [noisy, quiet] = [await deployPriceBurner(chain, 10n ** 9n), await deployPriceBurner(chain, 10n ** 9n)];
  const many: string[] = [];
  for (let count = 0; count < 20; count += 1)
    many.push(await confirmAsContractWallet(fixture, await fixture.create(), noisy));
  const one = await confirmAsContractWallet(fixture, await fixture.create(), quiet);
  const verify = createVerify(fixture.deps);
  const done: string[] = [];
  await Promise.all([...many, one].map((id) => verify(id).then(() => done.push(id))));
  expect(done.indexOf(one)).toBeLessThanOrEqual(1);
});

test("an attempt whose payer has spent the money is refused without calling the wallet's code", async () => {
  const chain = await startChain({ lanes: 2 });
  const proxy = await startFaultProxy({ target: chain.url });
  const fixture = await makeMerchantFixture(chain, { rpcUrls: [proxy.url] });
  const buyer = await fundBuyer(chain, 1_000_000n);
  const id = await fixture.create();
  const [option] = await fixture.offer(id, buyer);
  const results = option ? await signOption(option, buyer) : [];
  const confirmed = await fixture.confirm(id, option?.id ?? "", results);
  const simulations: unknown[] = [];
  proxy.onAnswer((method, params) => {
    const [request] = params as { maxFeePerGas?: string }[];
    if (method === "eth_call" && request?.maxFeePerGas !== undefined) simulations.push(request);
  });
  await sendUsdc(chain, buyer, chain.contracts.multicall, 1n);
  await chain.client.setCode({ address: buyer.address, bytecode: REFUSES });
  await fixture.verify(confirmed.ok ? (confirmed.value.attemptId ?? "") : "");
  expect(simulations).toEqual([]);
  const [row] = await fixture.db.selectFrom("attempt").selectAll().where("payment_id", "=", id).execute();
  expect(row).toMatchObject({ state: "refused", verification: "wallet" });
});
