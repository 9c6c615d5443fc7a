import { base58 } from "@scure/base";
import { TokenInstruction } from "@solana/spl-token";
import { type Kysely, sql } from "kysely";
import { afterEach, expect, test } from "vitest";
import type { Tables } from "../../../../db/tables.ts";
import { newSolanaKey } from "../../../../local/solana-client.ts";
import { fundTokens } from "../../../../local/spl-tokens.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { moveTokens } from "../../../support/solana-token-moves.ts";
import { fundSolanaBuyer, startTestSolana } from "../../../support/test-solana.ts";

const solana = await startTestSolana({ own: true });
const LARGE = 2_000_000n;

afterEach(async () => {
  await solana.knobs.drop(0);
  await solana.knobs.hold(0);
  await solana.knobs.setSlotMs(solana.slotMs);
  await solana.knobs.resume();
});

/**
 * A merchant's deployment with two endpoints: the first one's results can be altered, and the second can be
 * unavailable.
 */
async function startTwoEndpoints() {
  const [first, away] = [
    await startAlteringProxy({ target: solana.url }),
    await startFaultProxy({ target: solana.url }),
  ];
  const asset = { asset: solana.asset, symbol: "USDC", name: "USD Coin", decimals: 6, peg: "iso4217/USD" };
  const change = { assets: [{ ...asset, agreementThreshold: String(LARGE) }] };
  const fixture = await makeSolanaMerchantFixture(solana, { rpcUrls: [first.url, away.url], change });
  const accept = async (cents: bigint) => {
    const paymentId = await fixture.create(cents);
    await fixture.verify(await fixture.attempt(paymentId, await fundSolanaBuyer(solana)));
    return paymentId;
  };
  const stateOf = async (paymentId: string) => (await fixture.status(paymentId)).state;
  return { first, away, fixture, accept, stateOf };
}

type InContext = { context: { slot: number }; value: unknown[] };
type Status = { confirmationStatus: string; slot: number } | null;

/** The first endpoint reports every transaction that it knows with these members instead of its own. */
const alterStatuses = (first: Awaited<ReturnType<typeof startAlteringProxy>>, members: object) =>
  first.alter((method, _params, result) => {
    if (method !== "getSignatureStatuses") return result;
    const { context, value } = result as { context: unknown; value: Status[] };
    return { context, value: value.map((one) => one && { ...one, ...members }) };
  });

test("a transaction that one endpoint reports as final and another has never seen is not booked", async () => {
  const { first, fixture, accept, stateOf } = await startTwoEndpoints();
  // The blockhash is valid for 150 slots, and has to be valid when the transaction is broadcast again.
  await solana.knobs.setSlotMs(200);
  const paymentId = await accept(100n);
  // Every send is lost, and the first endpoint reports it as final.
  await solana.knobs.drop("all");
  first.alter((method, _params, result) => {
    if (method !== "getSignatureStatuses") return result;
    const { context, value } = result as InContext;
    const final = { slot: context.slot - 10, confirmations: null, err: null, confirmationStatus: "finalized" };
    return { context, value: value.map(() => final) };
  });
  await fixture.submit();
  for (let pass = 0; pass < 8; pass += 1) await fixture.watch(new AbortController().signal).catch(() => undefined);
  fixture.clock.advance(31_000);
  await fixture.watch().catch(() => undefined);
  expect(await stateOf(paymentId)).toBe("processing");
  // The transaction is still in flight: it is broadcast again, and is booked when both endpoints show it.
  await solana.knobs.drop(0);
  await solana.knobs.setSlotMs(solana.slotMs);
  first.alter(undefined);
  await fixture.watchUntil(async () => (await stateOf(paymentId)) === "succeeded");
});

test.each([
  ["confirmed", "contradicts"],
  ["finalized", "contradicts"],
  ["finalized", "does not answer"],
])(
  "a payment whose success one endpoint reports as a %s failure, while the other one %s, succeeds once they agree",
  async (confirmationStatus, other) => {
    const { first, away, fixture, accept, stateOf } = await startTwoEndpoints();
    const paymentId = await accept(100n);
    const confirmations = confirmationStatus === "finalized" ? null : 1;
    alterStatuses(first, { confirmationStatus, confirmations, err: { InstructionError: [2, { Custom: 1 }] } });
    away.refuse(other === "does not answer");
    await fixture.submit();
    const [transaction] = (await fixture.transactions()).slice(-1);
    const { connection } = solana.client;
    const landed = async () => (await connection.getSignatureStatus(transaction?.hash ?? "")).value?.confirmationStatus;
    await fixture.watchUntil(async () => (await landed()) === "finalized");
    for (let pass = 0; pass < 8; pass += 1) await fixture.watch(new AbortController().signal);
    expect(await stateOf(paymentId)).toBe("processing");
    first.alter(undefined);
    away.refuse(false);
    await fixture.watchUntil(async () => (await stateOf(paymentId)) === "succeeded");
  },
);

test("a failure that one endpoint reports as a success ends its payment once the endpoints agree", async () => {
  // The blockhash is valid for 150 slots, and the held transaction uses 100 of them.
  await solana.knobs.setSlotMs(200);
  const { first, fixture, stateOf } = await startTwoEndpoints();
  const [buyer, other] = [await fundSolanaBuyer(solana, 1_000_000n), newSolanaKey().address];
  await fundTokens(solana.client, solana.mint, [other], 0n);
  const paymentId = await fixture.create(100n);
  await fixture.verify(await fixture.attempt(paymentId, buyer));
  await solana.knobs.hold(100);
  await fixture.submit();
  await solana.knobs.hold(0);
  await moveTokens({ solana, from: buyer, to: other, amount: 1_000_000n });
  await solana.knobs.jump(100);
  await solana.knobs.setSlotMs(solana.slotMs);
  alterStatuses(first, { err: null });
  await fixture.watchUntil(async () => (await fixture.transfers())[0]?.state === "included");
  for (let pass = 0; pass < 8; pass += 1) await fixture.watch(new AbortController().signal);
  expect(await stateOf(paymentId)).toBe("processing");
  first.alter(undefined);
  await fixture.watchUntil(async () => (await stateOf(paymentId)) === "expired");
});

test("an unavailable endpoint delays no small payment, which is counted, and a large one waits until it is back", async () => {
  const { away, fixture, accept, stateOf } = await startTwoEndpoints();
  const confirmedAlone = async () =>
    (await fixture.deps.metrics.singleEndpointConfirmations.get()).values.reduce((sum, { value }) => sum + value, 0);
  const agreed = await accept(100n);
  await fixture.submit();
  await fixture.watchUntil(async () => (await stateOf(agreed)) === "succeeded");
  expect(await confirmedAlone()).toBe(0);
  away.refuse(true);
  const [small, large] = [await accept(100n), await accept(200n)];
  await fixture.submit();
  await fixture.watchUntil(async () => (await stateOf(small)) === "succeeded");
  for (let pass = 0; pass < 3; pass += 1) await fixture.watch().catch(() => undefined);
  expect(await stateOf(large)).toBe("processing");
  expect(await confirmedAlone()).toBeGreaterThan(0);
  const { values } = await fixture.deps.metrics.agreementWaits.get();
  expect(values[0]?.value).toBeGreaterThan(0);
  away.refuse(false);
  await fixture.watchUntil(async () => (await stateOf(large)) === "succeeded");
});

/** Copies a row with these changes, as a superuser: triggers and foreign keys do not apply. */
async function copyRow(
  db: Kysely<Tables>,
  table: "payment" | "transfer" | "observation",
  of: string,
  changes: Record<string, unknown>,
) {
  await db.transaction().execute(async (own) => {
    await sql`set local session_replication_role = replica`.execute(own);
    const { rows } = await sql<{ name: string }>`
      select column_name as name from information_schema.columns
      where table_name = ${table} and table_schema = 'public' and is_generated = 'NEVER'`.execute(own);
    const values = rows.map(({ name }) => (name in changes ? sql`${changes[name]}` : sql.ref(name)));
    const key = table === "observation" ? "transfer_id" : "id";
    await sql`
      insert into ${sql.table(table)} (${sql.join(rows.map(({ name }) => sql.ref(name)))})
      select ${sql.join(values)} from ${sql.table(table)} where ${sql.ref(key)} = ${of}`.execute(own);
  });
}

test("a hundred transfers that wait for an endpoint keep no later one waiting", async () => {
  const { away, fixture, accept, stateOf } = await startTwoEndpoints();
  away.refuse(true);
  const large = await accept(200n);
  await fixture.submit();
  const included = () =>
    fixture.db
      .selectFrom("transfer")
      .select("id")
      .where("payment_id", "=", large)
      .where("state", "=", "included")
      .executeTakeFirst();
  await fixture.watchUntil(async () => (await included()) !== undefined);
  const { id = "" } = (await included()) ?? {};
  for (let copy = 1; copy <= 101; copy += 1) {
    const hex = copy.toString(16).padStart(32, "0");
    const isLast = copy === 101;
    if (isLast) await copyRow(fixture.db, "payment", large, { id: `pay_${hex}` });
    await copyRow(fixture.db, "transfer", id, {
      id: `trf_${hex}`,
      payment_id: `pay_${hex}`,
      authorization_nonce: `nonce ${copy}`,
      lane_id: null,
      lane_nonce: null,
    });
    await copyRow(fixture.db, "observation", id, {
      transfer_id: `trf_${hex}`,
      log_index: 1_000 + copy,
      authorization_nonce: `nonce ${copy}`,
      ...(isLast ? { amount: LARGE - 1n } : {}),
    });
  }
  const last = `pay_${(101).toString(16).padStart(32, "0")}`;
  await fixture.watchUntil(async () => (await stateOf(last)) === "succeeded");
  expect(await stateOf(large)).toBe("processing");
});

type Shown = {
  transaction: { message: { instructions: { data: string }[] } };
  meta: { postTokenBalances: { uiTokenAmount: { amount: string } }[] };
};

test("a large deposit whose amount one endpoint invents is not booked, and one that both endpoints show is", async () => {
  const { first, fixture } = await startTwoEndpoints();
  const open = () =>
    fixture.db.selectFrom("ledger_entry").select("amount").where("account", "=", "exceptions").execute();
  const raised = 9_000_000n;
  // Raises the amount of a small deposit in its instruction and in the balances.
  first.alter((method, _params, result) => {
    if (method !== "getTransaction" || result === null) return result;
    const { meta, transaction } = result as Shown;
    for (const one of transaction.message.instructions) {
      const data = Buffer.from(base58.decode(one.data));
      if (data[0] !== TokenInstruction.TransferChecked) continue;
      data.writeBigUInt64LE(data.readBigUInt64LE(1) + raised, 1);
      one.data = base58.encode(data);
    }
    for (const { uiTokenAmount } of meta.postTokenBalances)
      uiTokenAmount.amount = String(BigInt(uiTokenAmount.amount) + raised);
    return result;
  });
  const buyer = await fundSolanaBuyer(solana);
  await moveTokens({ solana, from: buyer, to: fixture.keys.treasury.address, amount: 7n });
  const observations = () => fixture.db.selectFrom("observation").select("amount").execute();
  const isRead = async () => (await observations()).some(({ amount }) => amount >= LARGE);
  await fixture.watchUntil(isRead);
  for (let pass = 0; pass < 5; pass += 1) await fixture.watch(new AbortController().signal).catch(() => undefined);
  expect((await open()).filter(({ amount }) => -amount >= LARGE)).toEqual([]);
  first.alter(undefined);
  await fundTokens(solana.client, solana.mint, [fixture.keys.treasury.address], LARGE + 5n);
  await fixture.watchUntil(async () => (await open()).some(({ amount }) => amount === -LARGE - 5n));
  expect((await open()).filter(({ amount }) => -amount >= LARGE)).toHaveLength(1);
});
