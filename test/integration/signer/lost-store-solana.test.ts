import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { base58 } from "@scure/base";
import { Keypair, VersionedTransaction } from "@solana/web3.js";
import { describe, expect, test } from "vitest";
import { listNonceAddresses, readNonces, readRent } from "../../../chains/solana/nonce-accounts.ts";
import { buildPayoutTransaction } from "../../../chains/solana/treasury-transactions.ts";
import { makeScratch } from "../../../local/scratch-folder.ts";
import { fundSol, newSolanaKey } from "../../../local/solana-client.ts";
import { fundTokens } from "../../../local/spl-tokens.ts";
import { correctLedger } from "../../../payments/accounting/corrections.ts";
import { bookException, listExceptions } from "../../../payments/accounting/resolve-exceptions.ts";
import type { TreasurySigner } from "../../../signer/treasury-signer.ts";
import { withTreasurySignature } from "../../../transfers/solana/sign-own-transaction.ts";
import { makeOperators } from "../../support/approving-operators.ts";
import { startLosableSigner } from "../../support/losable-signer.ts";
import { unwrap } from "../../support/merchant-fixture.ts";
import {
  describeSolanaDeployment,
  makeSolanaMerchantFixture,
  type SolanaMerchantFixture,
} from "../../support/solana-merchant-fixture.ts";
import { testActor } from "../../support/test-actor.ts";
import { fundSolanaBuyer, makeSolanaKeys, startTestSolana, tokenBalance } from "../../support/test-solana.ts";
import { waitFor } from "../../support/wait-for.ts";

const solana = await startTestSolana();
const { asset, client } = solana;

/** Starts a shop whose signer is a process, with a networks file for its treasury and one for the treasury that follows. */
async function startShop() {
  const keys = await makeSolanaKeys(solana);
  const next = newSolanaKey();
  const env = { ...keys.env, NEXT_TREASURY_KEY: next.secretKey };
  const change = { treasury: { address: next.address, key: { env: "NEXT_TREASURY_KEY" } } };
  const folder = await makeScratch("lost-store-solana");
  const write = async (name: string, change: Record<string, unknown> = {}) => {
    await writeFile(join(folder, name), JSON.stringify(await describeSolanaDeployment(solana, keys, { change })));
    return join(folder, name);
  };
  const operators = makeOperators("test");
  const signer = await startLosableSigner({
    networks: { lost: await write("lost.json"), next: await write("next.json", change) },
    env,
    assets: [asset],
    rebuildArgs: ["--former", `${solana.id}=none`],
    limits: { file: { operators: operators.listed } },
  });
  const connection = signer.connect();
  const fixture = await makeSolanaMerchantFixture(solana, { keys, signer: connection });
  const { databaseUrl, clock, accountId, merchantId, destination } = fixture;
  /** Returns the workers of the treasury that follows, whose signer runs. */
  const follow = async () => {
    await signer.start("next");
    const of = { keys: { ...keys, env }, accountId, merchantId, destination };
    return makeSolanaMerchantFixture(solana, { of, change, databaseUrl, clock, signer: signer.connect() });
  };
  /** Runs `signer withdraw` for two operators, until it answers that the withdrawal was made. */
  const withdraw = async (amount: bigint, reference: string) => {
    const of = { asset, amount, receiver: next.address, reference };
    const approvals = operators.approve({ action: "withdraw capital", ...of });
    await fixture.watchUntil(async () =>
      (await signer.withdraw({ ...of, amount: String(amount), approvals })).output.includes("was made"),
    );
  };
  return { keys, next, signer, connection, fixture, follow, withdraw };
}

/** Makes a payment and pays it out. */
async function payOut(fixture: SolanaMerchantFixture, settlementId: string): Promise<void> {
  expect(await fixture.settle(settlementId)).toEqual(["begun"]);
  await sendUntilPaid(fixture, settlementId);
}

async function sendUntilPaid(fixture: SolanaMerchantFixture, id: string): Promise<void> {
  const stateOf = () =>
    fixture.db.selectFrom("settlement").select("state").where("id", "=", id).executeTakeFirstOrThrow();
  fixture.clock.advance(65_000);
  await fixture.watchUntil(async () => {
    await fixture.submit();
    return (await stateOf()).state === "paid";
  });
  await fixture.watchUntil(async () => (await fixture.transactions()).every(({ state }) => state === "final"));
}

/**
 * Makes a payment, and has a transaction of its payout signed that is not sent, as an attacker who has a worker does. Returns its
 * settlement, and the function with which the attacker sends it.
 */
async function signUnsent(fixture: SolanaMerchantFixture, signer: TreasurySigner, cents: bigint) {
  const { chain, deps, keys } = fixture;
  const paymentId = await fixture.pay(await fundSolanaBuyer(solana), cents);
  const { id } = await fixture.settlementOf(paymentId);
  expect(await fixture.settle(id)).toEqual(["begun"]);
  const row = (await fixture.transfers()).find(({ settlement_id }) => settlement_id === id);
  // A withdrawal takes the last one, so that this one keeps its value.
  const [place] = await listNonceAddresses(chain, deps.deployment);
  const nonceAccount = place?.address ?? "";
  const { nonces } = await readNonces(chain, [nonceAccount], "confirmed");
  const request = {
    asset,
    feePayer: chain.lanes[0] ?? "",
    nonceAccount,
    nonce: nonces[0] ?? "",
    markerRent: await readRent(chain),
    budget: { units: 200_000, unitPrice: 0n },
    payouts: [
      {
        memo: row?.authorization_nonce ?? "",
        destination: fixture.destination,
        amount: row?.amount ?? 0n,
        makeAccount: true,
      },
    ],
  };
  const answer = await signer.signPayoutTransaction(request);
  if (!answer.ok) throw new Error(answer.detail);
  const bytes = withTreasurySignature(buildPayoutTransaction(chain, request), chain.treasury, answer.signature);
  const transaction = VersionedTransaction.deserialize(bytes);
  transaction.sign([Keypair.fromSecretKey(base58.decode(keys.lanes[0]?.secretKey ?? ""))]);
  return { id, attack: () => client.connection.sendRawTransaction(transaction.serialize()) };
}

/** What the cluster answers when the treasury's token account has too little. */
const noMoney = /insufficient funds|custom program error: 0x1/;

const booked = async (fixture: SolanaMerchantFixture) => {
  const reconciled = await fixture.reconcile();
  return reconciled.ok && reconciled.value.filter(({ difference }) => difference !== 0n);
};

describe("after the signer of a treasury on Solana has lost its store", () => {
  test("operators empty the treasury, the next one makes the unsent payout, and an old signature moves nothing more", async () => {
    const { keys, next, signer, connection, fixture, follow, withdraw } = await startShop();
    const paid = await fixture.settlementOf(await fixture.pay(await fundSolanaBuyer(solana), 300n));
    await payOut(fixture, paid.id);
    const due = await fixture.settlementOf(await fixture.pay(await fundSolanaBuyer(solana), 100n));
    const unsent = await signUnsent(fixture, connection, 200n);

    expect(await signer.lose()).toMatchObject({ code: 1, output: expect.stringContaining("has no deposits") });
    const claimed = await signer.claim(fixture.db, async () =>
      expect(await fixture.settle(due.id)).toEqual(["rebuild_unfinished"]),
    );
    expect(claimed).toEqual({ verified: 3, refused: {} });
    expect(await signer.rebuild()).toMatchObject({ code: 1, output: expect.stringContaining("holds 3000000 of") });

    await fundSol(client, [keys.treasury.address], 5_000_000n);
    await withdraw(3_000_000n, "store-lost-1");
    expect(await tokenBalance(solana, next.address)).toBe(3_000_000n);
    await expect(unsent.attack()).rejects.toThrow(noMoney);
    await fixture.watchUntil(async () => (await listExceptions(fixture.deps, 10)).length > 0);
    const [left] = await listExceptions(fixture.deps, 10);
    unwrap(await bookException(fixture.deps, { actor: testActor, id: left?.id ?? 0, as: "cold", note: "store lost" }));
    // The withdrawal is in the records, so that no operator has to explain it.
    expect(await signer.rebuild()).toEqual({ code: 0, output: expect.stringContaining("2 payouts recorded") });
    const retired = await signer.start("lost");
    expect(await fixture.settle(due.id)).toEqual(["treasury_retired"]);
    await retired.kill("SIGTERM");

    const workers = await follow();
    const moved = { debit: "treasury", credit: "cold", asset, amount: 3_000_000n };
    unwrap(
      await correctLedger(workers.deps, { actor: testActor, reference: "LOST-1", ...moved, note: "treasury replaced" }),
    );
    expect(await signer.renew(fixture.databaseUrl)).toMatchObject({ code: 0, result: { renewed: 1, refused: {} } });
    await sendUntilPaid(workers, unsent.id);
    await payOut(workers, due.id);
    await expect(unsent.attack()).rejects.toThrow(noMoney);
    expect(await tokenBalance(solana, fixture.destination)).toBe(6_000_000n);
    expect(await tokenBalance(solana, next.address)).toBe(0n);
    expect(await booked(workers)).toEqual([]);
  }, 400_000);

  test("a payout that an attacker made with its old signature is not made again by the treasury that follows", async () => {
    const { next, signer, connection, fixture, follow } = await startShop();
    const unsent = await signUnsent(fixture, connection, 200n);
    await signer.lose();
    expect(await signer.claim(fixture.db)).toEqual({ verified: 1, refused: {} });
    // The service does not see it: a watcher would find it in the history, and count it as made.
    await unsent.attack();
    const isRecorded = async () => (await signer.rebuild()).output.includes("1 payouts recorded");
    await waitFor(isRecorded, { within: 60_000, what: "the attacker's payout is final" });
    expect(await tokenBalance(solana, fixture.destination)).toBe(2_000_000n);

    const workers = await follow();
    await fundTokens(client, solana.mint, [next.address], 2_000_000n);
    expect(await signer.renew(fixture.databaseUrl)).toMatchObject({
      code: 1,
      result: { renewed: 0, refused: { treasury_changed: 1 } },
    });
    await workers.submit();
    expect(await tokenBalance(solana, fixture.destination)).toBe(2_000_000n);
    expect(await tokenBalance(solana, next.address)).toBe(2_000_000n);
  }, 400_000);
});
