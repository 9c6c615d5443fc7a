import { readFile } from "node:fs/promises";
import { PublicKey, SystemProgram } from "@solana/web3.js";
import { afterEach, expect, test } from "vitest";
import { listMemos } from "../../../../chains/solana/treasury-movements.ts";
import { firstSignature, parseTransaction } from "../../../../chains/solana/wire-format.ts";
import { fundSol, keypairOf, sendAll } from "../../../../local/solana-client.ts";
import { parseNetworks } from "../../../../runtime/networks/read-networks.ts";
import { startBusyEndpoint } from "../../../support/busy-solana-endpoint.ts";
import { execute } from "../../../support/execute-sql.ts";
import { describeSolanaDeployment, makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { startSignerFor } from "../../../support/test-signer.ts";
import { fundSolanaBuyer, makeSolanaKeys, startTestSolana, tokenBalance } from "../../../support/test-solana.ts";

const solana = await startTestSolana({ own: true });
const { connection } = solana.client;
const CAP = 100_000n;

afterEach(async () => {
  await solana.knobs.resume();
});

/** A merchant whose payout of 1 USDC is begun, on a cluster whose endpoints forward nothing below a price that the test sets. */
async function beginPayout(change: Record<string, unknown> = {}) {
  const busy = await startBusyEndpoint({ target: solana.url });
  const keys = await makeSolanaKeys(solana);
  const document = await describeSolanaDeployment(solana, keys, { rpcUrls: [busy.url] });
  const { SOLANA_TREASURY_KEY = "" } = keys.env;
  const { signer, store, setLimits } = await startSignerFor(parseNetworks(document), { SOLANA_TREASURY_KEY });
  const least = { minPriorityFee: "2000", maxPriorityFee: String(CAP), ...change };
  const fixture = await makeSolanaMerchantFixture(solana, { keys, signer, rpcUrls: [busy.url], change: least });
  const { id } = await fixture.settlementOf(await fixture.pay(await fundSolanaBuyer(solana)));
  await fixture.watchUntil(async () => (await fixture.transactions()).every(({ state }) => state === "final"));
  expect(await fixture.settle(id)).toEqual(["begun"]);
  const payouts = async () => (await fixture.transactions()).filter(({ nonce_account }) => nonce_account !== null);
  const stateOf = async () =>
    (await fixture.db.selectFrom("settlement").select("state").where("id", "=", id).executeTakeFirstOrThrow()).state;
  const isPaid = async () => (await stateOf()) === "paid";
  const isFinal = async () =>
    (await fixture.transactions()).every(({ state }) => state === "final" || state === "replaced");
  /** Ends `slots` slots later, and makes the passes of the watcher that follow. */
  const watchLater = async (slots: number) => {
    await solana.knobs.jump(slots);
    fixture.clock.advance(2_000);
    for (let pass = 0; pass < 2; pass += 1) {
      await solana.knobs.jump(5);
      await fixture.watch();
    }
  };
  const balance = () => tokenBalance(solana, fixture.destination);
  const feeOf = ({ gas_limit: units, max_fee_per_gas: price }: { gas_limit: bigint; max_fee_per_gas: bigint }) =>
    (units * price) / 1_000_000n;
  return { busy, fixture, keys, signer, store, setLimits, payouts, isPaid, isFinal, watchLater, balance, feeOf };
}

test("a payout whose price no longer suffices is signed again at higher prices with the same durable nonce, and paid once", async () => {
  const { busy, fixture, store, payouts, isPaid, isFinal, watchLater, balance } = await beginPayout();
  const stored: unknown[] = [];
  busy.onSend(async (bytes) => {
    const row = (await payouts()).find(({ hash }) => hash === firstSignature(bytes));
    stored.push(row?.bytes.equals(bytes));
  });
  busy.setPrice(2n ** 60n);
  await fixture.submit();
  const [first] = await payouts();
  if (!first) throw new Error("there is no payout");
  busy.setPrice(3n * first.max_fee_per_gas);
  await fixture.watchUntil(isPaid);
  const rows = await payouts();
  const { lane_id, nonce, nonce_account, nonce_value, gas_limit } = first;
  expect(rows).toHaveLength(3);
  for (const row of rows) expect(row).toMatchObject({ lane_id, nonce, nonce_account, nonce_value, gas_limit });
  expect(rows.map((row) => row.max_fee_per_gas / first.max_fee_per_gas)).toEqual([1n, 2n, 4n]);
  expect(rows.map(({ replacement }) => replacement)).toEqual([0, 1, 2]);
  expect(new Set(stored)).toEqual(new Set([true]));

  await fixture.watchUntil(isFinal);
  expect((await payouts()).map(({ state }) => state)).toEqual(["replaced", "replaced", "final"]);
  // The cluster refuses the others, and the next payout has another value of a nonce.
  for (const { bytes } of rows)
    await connection.sendRawTransaction(bytes, { skipPreflight: true }).catch(() => undefined);
  await watchLater(5);
  expect(await balance()).toBe(1_000_000n);
  const count = (sql: string) => store.prepare(sql).get();
  expect(count("select count(*) as n, sum(cast(counted as integer)) as counted from payout")).toEqual({
    n: 1,
    counted: 1_000_000,
  });
  expect(count("select count(*) as n from payout_transaction")).toEqual({ n: 1 });
  const reconciled = await fixture.reconcile();
  expect(reconciled.ok && reconciled.value.filter(({ difference }) => difference !== 0n)).toEqual([]);
});

test("the fee of a payout rises up to the network's cap, and further when the operator raises the cap", async () => {
  const { busy, fixture, keys, signer, payouts, isPaid, isFinal, watchLater, balance, feeOf } = await beginPayout();
  busy.setPrice(2n ** 60n);
  await fixture.submit();
  for (let round = 0; round < 8; round += 1) await watchLater(60);
  const rows = await payouts();
  const fees = rows.map(feeOf);
  expect(fees).toHaveLength(7);
  expect(fees).toEqual(fees.toSorted((one, other) => Number(one - other)));
  expect(fees.at(-1)).toBeLessThanOrEqual(CAP);
  expect(fees.at(-1)).toBeGreaterThan((CAP * 99n) / 100n);
  await watchLater(60);
  expect(await payouts()).toHaveLength(7);
  expect(fixture.lines.join("\n")).toContain("it offers the network's maxPriorityFee already");

  // What the operator of a stuck lane reads, and does.
  const runbook = await readFile("ops/runbooks/lane-stuck.md", "utf8");
  const [query = ""] = runbook.match(/(?<=```sql\n)[^`]*priority_fee[^`]*/) ?? [];
  const shown = await execute(fixture.databaseUrl, query);
  expect(shown.map(({ priority_fee }) => BigInt(String(priority_fee)))).toEqual(fees);
  const { databaseUrl, clock, accountId, merchantId, destination } = fixture;
  const of = { keys, accountId, merchantId, destination };
  const restarted = await makeSolanaMerchantFixture(solana, {
    ...{ of, databaseUrl, clock, signer, rpcUrls: [busy.url] },
    change: { minPriorityFee: "2000", maxPriorityFee: String(4n * CAP) },
  });
  busy.setPrice((rows.at(-1)?.max_fee_per_gas ?? 0n) + 1n);
  await restarted.watchUntil(isPaid);
  await restarted.watchUntil(isFinal);
  expect((await payouts()).map(({ state }) => state)).toEqual([...Array<string>(7).fill("replaced"), "final"]);
  expect(await balance()).toBe(1_000_000n);
});

test("a payout whose newer bytes disappear with their slot is proved by the older ones that another slot includes", async () => {
  const { busy, fixture, payouts, isPaid, isFinal, watchLater, balance } = await beginPayout({ finality: "finalized" });
  busy.setPrice(2n ** 60n);
  await fixture.submit();
  await solana.knobs.pause();
  await watchLater(60);
  const [older, newer] = await payouts();
  expect(newer?.replacement).toBe(1);
  await connection.sendRawTransaction(newer?.bytes ?? Buffer.alloc(0), { skipPreflight: true });
  await solana.knobs.jump(1);
  await fixture.watch();
  const states = async () => (await payouts()).map(({ state }) => state);
  expect((await states())[1]).toBe("included");
  expect(await solana.knobs.rollback(2)).toEqual([newer?.hash]);
  await connection.sendRawTransaction(older?.bytes ?? Buffer.alloc(0), { skipPreflight: true });
  await solana.knobs.jump(1);
  await fixture.watch();
  expect(await states()).toEqual(["included", "accepted"]);
  await solana.knobs.resume();
  await fixture.watchUntil(isPaid);
  await fixture.watchUntil(isFinal);
  expect(await states()).toEqual(["final", "replaced"]);
  expect(await balance()).toBe(1_000_000n);
  const open = await fixture.db.selectFrom("observation").select("transfer_id").where("orphaned", "=", false).execute();
  expect(open.map(({ transfer_id }) => transfer_id)).not.toContain(null);
});

test("a payout whose relayer has no money is not signed at a higher price, and is included when the relayer has", async () => {
  const { fixture, busy, keys, payouts, isPaid, watchLater, balance } = await beginPayout();
  busy.setPrice(2n ** 60n);
  await fixture.submit();
  const [lane] = keys.lanes;
  if (!lane) throw new Error("there is no relayer");
  const from = new PublicKey(lane.address);
  const [held, operator] = [await connection.getBalance(from, "processed"), solana.client.operator.publicKey];
  const leave = SystemProgram.transfer({ fromPubkey: from, toPubkey: operator, lamports: held });
  await sendAll(solana.client, [{ instructions: [leave], signers: [keypairOf(lane)] }]);
  for (let round = 0; round < 2; round += 1) await watchLater(60);
  expect(await payouts()).toHaveLength(1);
  expect(fixture.lines.join("\n")).toContain("the network's fee cannot be paid now");
  await fundSol(solana.client, [lane.address], 1_000_000_000n);
  busy.setPrice(0n);
  await fixture.watchUntil(isPaid);
  expect(await balance()).toBe(1_000_000n);
});

test("a payout that the signer does not sign now is not sent at a higher price, and is signed when it does", async () => {
  const { busy, fixture, setLimits, payouts, isPaid, watchLater } = await beginPayout();
  busy.setPrice(2n ** 60n);
  await fixture.submit();
  await setLimits({ file: { paused: true } });
  await watchLater(60);
  expect(await payouts()).toHaveLength(1);
  await setLimits();
  const [first] = await payouts();
  busy.setPrice((first?.max_fee_per_gas ?? 0n) + 1n);
  await fixture.watchUntil(isPaid);
  expect(await payouts()).toHaveLength(2);
});

test("payouts of one transaction are signed again together, also when one of them counted as paid before its slot disappeared", async () => {
  const { busy, fixture, payouts, isFinal, watchLater, balance } = await beginPayout();
  const ids: string[] = [];
  for (const cents of [200n, 300n])
    ids.push((await fixture.settlementOf(await fixture.pay(await fundSolanaBuyer(solana), cents))).id);
  await fixture.watchUntil(isFinal);
  expect(await balance()).toBe(1_000_000n);
  expect(await fixture.settle(...ids)).toEqual(["begun", "begun"]);
  busy.setPrice(2n ** 60n);
  await fixture.submit();
  const [, first] = await payouts();
  const memosOf = (bytes: Uint8Array | undefined) => {
    const parsed = parseTransaction(bytes ?? new Uint8Array());
    if ("error" in parsed) throw new Error(parsed.error);
    return listMemos(parsed).toSorted();
  };
  expect(memosOf(first?.bytes)).toHaveLength(2);
  const confirmed = `set session_replication_role = replica; update transfer set state = 'confirmed' where settlement_id = '${ids[0]}'`;
  await execute(fixture.databaseUrl, confirmed);
  await watchLater(60);
  const [, , second] = await payouts();
  expect(memosOf(second?.bytes)).toEqual(memosOf(first?.bytes));
  busy.setPrice(0n);
  await fixture.watchUntil(isFinal);
  expect(await balance()).toBe(6_000_000n);
});

test("a signer that does not answer keeps no buyer's payment waiting while payouts are signed again", async () => {
  const { busy, fixture, keys, signer, payouts, watchLater } = await beginPayout();
  busy.setPrice(2n ** 60n);
  await fixture.submit();
  const { databaseUrl, clock, accountId, merchantId, destination } = fixture;
  const silent = { ...signer, signPayoutTransaction: () => new Promise<never>(() => undefined) };
  const of = { keys, accountId, merchantId, destination };
  const other = await makeSolanaMerchantFixture(solana, {
    of,
    databaseUrl,
    clock,
    signer: silent,
    rpcUrls: [busy.url],
  });
  await watchLater(1);
  await solana.knobs.jump(60);
  await other.watch();
  busy.setPrice(0n);
  const paymentId = await other.pay(await fundSolanaBuyer(solana));
  expect((await other.status(paymentId)).state).toBe("succeeded");
  expect(await payouts()).toHaveLength(1);
});
