import { Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { readBlockhash } from "../../../chains/solana/cluster-state.ts";
import { listNonceAddresses, readNonces, readRent } from "../../../chains/solana/nonce-accounts.ts";
import { findMarker } from "../../../chains/solana/payout-markers.ts";
import { newSolanaKey } from "../../../local/solana-client.ts";
import { claimAllDeposits } from "../../../payments/payouts/claim-all-deposits.ts";
import { createMetrics } from "../../../runtime/metrics.ts";
import { parseNetworks } from "../../../runtime/networks/read-networks.ts";
import { workerActor } from "../../../signer/audit/entries.ts";
import { createStore } from "../../../signer/create-store.ts";
import { parseLimits } from "../../../signer/limits.ts";
import { rebuildPayouts } from "../../../signer/rebuild.ts";
import { createShortPayouts } from "../../../signer/short-payouts.ts";
import type { SignerDeps } from "../../../signer/signer-deps.ts";
import { authorizeMarkerClosing, authorizePayoutTransaction } from "../../../signer/solana/authorize-transactions.ts";
import type { PayoutTransactionRequest } from "../../../signer/solana/transaction-protocol.ts";
import { verifyDeposits } from "../../../signer/verify-deposits.ts";
import { execute } from "../../support/execute-sql.ts";
import {
  describeSolanaDeployment,
  makeSolanaMerchantFixture,
  type SolanaMerchantFixture,
} from "../../support/solana-merchant-fixture.ts";
import { limitsDocument, startSignerFor } from "../../support/test-signer.ts";
import { fundSolanaBuyer, makeSolanaKeys, startTestSolana, tokenBalance } from "../../support/test-solana.ts";

// A thief who controls the service's database, as its superuser, obtains nothing from the treasury on Solana.

const DAY_MS = 86_400_000;
const solana = await startTestSolana();
const keys = await makeSolanaKeys(solana);
const change = { payoutMarkerDays: 40 };
const { SOLANA_TREASURY_KEY = "" } = keys.env;
const signing = await startSignerFor(parseNetworks(await describeSolanaDeployment(solana, keys, { change })), {
  SOLANA_TREASURY_KEY,
});
const { signer } = signing;
const fixture = await makeSolanaMerchantFixture(solana, { keys, change, signer });
const { databaseUrl, chain, deps } = fixture;
/** A second merchant of the same deployment, which the thief controls. */
const thief = await makeSolanaMerchantFixture(solana, { keys, change, signer, databaseUrl, clock: fixture.clock });
const stranger = newSolanaKey().address;
const { asset } = solana;

const balanceOf = (owner: string) => tokenBalance(solana, owner);
const held = () => balanceOf(keys.treasury.address);

/** Runs statements with all triggers off, as only a superuser can. */
const asSuperuser = (...statements: string[]) =>
  execute(databaseUrl, `set session_replication_role = replica; ${statements.join("; ")}`);

/** Makes a payment of the merchant. Returns it and its settlement, which is due. */
async function earn(of: SolanaMerchantFixture, cents: bigint): Promise<{ paymentId: string; settlementId: string }> {
  const paymentId = await of.pay(await fundSolanaBuyer(solana), cents);
  return { paymentId, settlementId: (await of.settlementOf(paymentId)).id };
}

const transferOf = (settlementId: string) =>
  fixture.db.selectFrom("transfer").selectAll().where("settlement_id", "=", settlementId).executeTakeFirstOrThrow();
const stateOf = async (settlementId: string) =>
  (await fixture.db.selectFrom("settlement").select("state").where("id", "=", settlementId).executeTakeFirstOrThrow())
    .state;

/** Sends what is ready, past every hold, until the settlement is paid. */
async function payOut(settlementId: string): Promise<void> {
  fixture.clock.advance(65_000);
  await fixture.watchUntil(async () => {
    await fixture.submit();
    return (await stateOf(settlementId)) === "paid";
  });
}

/** Plants a settlement in the state `due`, without anything behind it. */
async function plantSettlement(of: SolanaMerchantFixture, amount: bigint, number: number): Promise<string> {
  const id = `stl_planted${number}${of.merchantId.slice(-8)}`;
  await asSuperuser(
    `insert into merchant_balance (merchant_id, asset, amount) values ('${of.merchantId}', '${asset}', ${amount})
      on conflict (merchant_id, asset) do update set amount = merchant_balance.amount + excluded.amount`,
    `insert into settlement (id, merchant_id, mode, asset, number, amount, state, created_at, due_at)
      values ('${id}', '${of.merchantId}', 'live', '${asset}', ${number}, ${amount}, 'due', now(), now())`,
  );
  return id;
}

/** Returns a request for a transaction that makes the payout of a transfer. */
async function requestFor(
  settlementId: string,
  more: Partial<PayoutTransactionRequest> = {},
): Promise<PayoutTransactionRequest> {
  // Workers take the first free one, so they use the third one last.
  const [, , place] = await listNonceAddresses(chain, deps.deployment);
  const nonceAccount = place?.address ?? "";
  const { nonces } = await readNonces(chain, [nonceAccount], "confirmed");
  const { authorization_nonce: memo, amount, receiver: destination } = await transferOf(settlementId);
  return {
    asset,
    feePayer: chain.lanes[0] ?? "",
    nonceAccount,
    nonce: nonces[0] ?? "",
    markerRent: await readRent(chain),
    budget: { units: 200_000, unitPrice: 0n },
    payouts: [{ memo, destination, amount, makeAccount: true }],
    ...more,
  };
}

describe("a thief who is the database's superuser", () => {
  test("a due settlement with no payment behind it pays nothing", async () => {
    await earn(fixture, 500n);
    const before = await held();
    await asSuperuser(
      `update settlement_destination set destination = '${solana.id}:${stranger}' where merchant_id = '${thief.merchantId}'`,
    );
    const planted = await plantSettlement(thief, 5_000_000n, 901);
    expect(await fixture.settle(planted)).toEqual(["funds_short"]);
    await fixture.submit();
    expect(await held()).toBe(before);
    await asSuperuser(
      `update settlement_destination set destination = '${solana.id}:${thief.destination}' where merchant_id = '${thief.merchantId}'`,
    );
  });

  test("a payment that was moved to another merchant pays that merchant nothing", async () => {
    const { paymentId } = await earn(fixture, 400n);
    const id = await plantSettlement(thief, 4_000_000n, 902);
    await asSuperuser(
      `update payment set merchant_id = '${thief.merchantId}', settlement_id = '${id}' where id = '${paymentId}'`,
    );
    expect(await fixture.settle(id)).toEqual(["deposit_mismatch"]);
  });

  test("a payout that is ready for an address that was swapped since, or for a raised amount, is not signed", async () => {
    const { settlementId } = await earn(thief, 300n);
    expect(await thief.settle(settlementId)).toEqual(["begun"]);
    const { id, receiver } = await transferOf(settlementId);
    const before = await held();
    for (const [changed, undo] of [
      [`receiver = '${stranger}'`, `receiver = '${receiver}'`],
      ["amount = 9000000", "amount = 3000000"],
    ]) {
      await asSuperuser(`update transfer set ${changed} where id = '${id}'`);
      await fixture.submit();
      expect((await transferOf(settlementId)).last_error).toContain("payout_unauthorized");
      expect(await held()).toBe(before);
      await asSuperuser(`update transfer set ${undo} where id = '${id}'`);
      fixture.clock.advance(65_000);
    }
    expect(await balanceOf(stranger)).toBe(0n);
    await payOut(settlementId);
    expect(await balanceOf(thief.destination)).toBe(3_000_000n);
  });

  test("a swapped destination receives nothing within the waiting period", async () => {
    const { settlementId } = await earn(thief, 200n);
    await asSuperuser(
      `update settlement_destination set destination = '${solana.id}:${stranger}' where merchant_id = '${thief.merchantId}'`,
    );
    expect(await thief.settle(settlementId)).toEqual(["destination_waiting"]);
    await asSuperuser(
      `update settlement_destination set destination = '${solana.id}:${thief.destination}' where merchant_id = '${thief.merchantId}'`,
    );
    expect(await thief.settle(settlementId)).toEqual(["begun"]);
    await payOut(settlementId);
  });

  test("a payout that was made is not made again: the bytes are used up, and its nonce has a marker", async () => {
    const { settlementId } = await earn(thief, 100n);
    expect(await thief.settle(settlementId)).toEqual(["begun"]);
    await payOut(settlementId);
    const before = await held();
    const { lane_id, lane_nonce } = await transferOf(settlementId);
    const sent = (await fixture.transactions()).find((one) => one.lane_id === lane_id && one.nonce === lane_nonce);
    const repeated = solana.client.connection.sendRawTransaction(sent?.bytes ?? Buffer.alloc(0));
    await expect(repeated).rejects.toThrow(/Blockhash not found|already been processed/);
    await asSuperuser(`update transfer set state = 'ready', lane_id = null, lane_nonce = null, hold_until = null
      where settlement_id = '${settlementId}'`);
    await fixture.submit();
    expect(await held()).toBe(before);
  });
});

describe("the signer", () => {
  test("signs only for relayers and for the current value of one of the deployment's nonces", async () => {
    const { settlementId } = await earn(thief, 100n);
    expect(await thief.settle(settlementId)).toEqual(["begun"]);
    const ask = async (more: Partial<PayoutTransactionRequest>) =>
      signer.signPayoutTransaction(await requestFor(settlementId, more));
    const { blockhash } = await readBlockhash(chain);
    const refusals: [Partial<PayoutTransactionRequest>, string][] = [
      [{ feePayer: keys.treasury.address }, "fee_payer_unknown"],
      [{ feePayer: stranger }, "fee_payer_unknown"],
      [{ nonce: blockhash }, "nonce_stale"],
      [{ nonceAccount: stranger }, "nonce_stale"],
    ];
    for (const [more, reason] of refusals) expect(await ask(more)).toMatchObject({ ok: false, reason });
    await signing.setLimits({ file: { paused: true } });
    expect(await ask({})).toMatchObject({ ok: false, reason: "paused" });
    await signing.setLimits({});
    expect(await ask({})).toMatchObject({ ok: true });
    await payOut(settlementId);
  });

  test("closes a marker only when no signed transaction of its payout can be included, and never signs the payout again", async () => {
    const { settlementId } = await earn(thief, 100n);
    expect(await thief.settle(settlementId)).toEqual(["begun"]);
    // A second transaction of the payout, which the thief keeps.
    const kept = await requestFor(settlementId);
    expect(await signer.signPayoutTransaction(kept)).toMatchObject({ ok: true });
    await payOut(settlementId);
    const { address } = findMarker(chain.treasury, kept.payouts[0]?.memo ?? "");
    const close = async () => {
      const { blockhash } = await readBlockhash(chain);
      const markers = [{ address, lamports: await readRent(chain) }];
      return signer.signMarkerClosing({ chain: chain.chain, feePayer: chain.lanes[0] ?? "", blockhash, markers });
    };
    await fixture.watchUntil(async () => (await fixture.transactions()).every(({ state }) => state === "final"));
    signing.clock.advance(DAY_MS);
    expect(await close()).toMatchObject({ ok: false, reason: "marker_in_use" });

    // Six payouts take three transactions, which use all nonces, so that the kept transaction is worthless.
    const ids: string[] = [];
    for (let count = 0; count < 6; count += 1) ids.push((await earn(thief, 100n)).settlementId);
    expect(await thief.settle(...ids)).toEqual(ids.map(() => "begun"));
    for (const id of ids) await payOut(id);
    await fixture.watchUntil(async () => (await fixture.transactions()).every(({ state }) => state === "final"));
    expect((await readNonces(chain, [kept.nonceAccount], "finalized")).nonces[0]).not.toBe(kept.nonce);
    expect(await close()).toMatchObject({ ok: true, addresses: [address] });
    const repeated = await requestFor(settlementId);
    expect(await signer.signPayoutTransaction(repeated)).toMatchObject({ ok: false, reason: "payout_closed" });
  });

  test("closes no marker of a payout that it did not sign, and no durable nonce account", async () => {
    const [place] = await listNonceAddresses(chain, deps.deployment);
    for (const address of [findMarker(chain.treasury, `0x${"ab".repeat(32)}`).address, place?.address ?? ""]) {
      const { blockhash } = await readBlockhash(chain);
      const request = { chain: chain.chain, feePayer: chain.lanes[0] ?? "", blockhash };
      const answer = await signer.signMarkerClosing({ ...request, markers: [{ address, lamports: 1_000n }] });
      expect(answer).toMatchObject({ ok: false, reason: "marker_unknown" });
    }
  });
});

test("the treasury of a lost store signs neither payouts nor closings again", async () => {
  const parsed = parseLimits(JSON.stringify(limitsDocument([asset])));
  if ("error" in parsed) throw new Error(parsed.error);
  const rebuilt: SignerDeps = {
    store: createStore(":memory:", { command: "init", at: new Date() }),
    chains: deps.chains,
    checkChain: async () => undefined,
    deployment: deps.deployment,
    treasuryKeys: new Map([[solana.id, { sign: async () => null }]]),
    readLimits: () => parsed.limits,
    log: deps.log,
    metrics: createMetrics(new Registry(), "signer"),
    shortPayouts: createShortPayouts(deps.now),
    now: deps.now,
    caller: workerActor("socket"),
  };
  await claimAllDeposits({
    db: fixture.db,
    signer: { ...signer, claimDeposits: (deposits) => verifyDeposits(rebuilt, deposits) },
  });
  const history = { former: new Map([[solana.id, []]]), from: new Map<string, number>(), accepted: new Set<string>() };
  const amount = await held();
  expect(await rebuildPayouts(rebuilt, { ...history, left: new Map() })).toMatchObject({ held: [{ asset, amount }] });
  const left = new Map([[asset, amount]]);
  const made = await rebuildPayouts(rebuilt, { ...history, left });
  expect(made).toMatchObject({ recorded: expect.any(Number), unattributed: [], held: [] });
  const paid = fixture.db.selectFrom("settlement").select("id").where("state", "=", "paid").orderBy("created_at");
  const request = await requestFor((await paid.executeTakeFirstOrThrow()).id);
  expect(await authorizePayoutTransaction(rebuilt, request)).toMatchObject({ ok: false, reason: "treasury_retired" });
  const { blockhash } = await readBlockhash(chain);
  const markers = [{ address: findMarker(chain.treasury, request.payouts[0]?.memo ?? "").address, lamports: 1_000n }];
  expect(
    await authorizeMarkerClosing(rebuilt, {
      chain: chain.chain,
      feePayer: chain.lanes[0] ?? "",
      blockhash,
      markers,
    }),
  ).toMatchObject({ ok: false, reason: "treasury_retired" });
});

test("old markers are closed through the signer, and their rent returns to the relayer", async () => {
  const markers = () => fixture.db.selectFrom("payout_marker").selectAll().execute();
  expect((await markers()).length).toBeGreaterThan(0);
  fixture.clock.advance(41 * DAY_MS);
  signing.clock.advance(41 * DAY_MS);
  const before = (await markers()).length;
  await fixture.watchUntil(async () => (await markers()).length < before);
});
