import { randomBytes } from "node:crypto";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { firstSignature } from "../../../../chains/solana/wire-format.ts";
import { findReachedHead } from "../../../../db/queries/chain-cursors.ts";
import { signAsWallet } from "../../../../local/solana-buyer.ts";
import { newSolanaKey } from "../../../../local/solana-client.ts";
import { fundTokens } from "../../../../local/spl-tokens.ts";
import { findExpiryHeight } from "../../../../transfers/solana/expiry-heights.ts";
import { makeConfirmSteps } from "../../../support/solana-confirm-steps.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { startSolanaProxy } from "../../../support/solana-test-endpoint.ts";
import { moveTokens } from "../../../support/solana-token-moves.ts";
import { fundSolanaBuyer, startTestSolana, tokenBalance } from "../../../support/test-solana.ts";
import { waitFor } from "../../../support/wait-for.ts";

const solana = await startTestSolana({ own: true });
const [first, second] = [await startSolanaProxy(solana), await startSolanaProxy(solana)];
const fixture = await makeSolanaMerchantFixture(solana, {
  rpcUrls: [first.fault.url, second.fault.url],
  // Longer than a test that holds an endpoint's answer takes on a slow machine. Every other endpoint fails at once.
  change: { rpcTimeoutMs: 60_000 },
});
const { begin, rowsOf, confirmAndVerify, finishPayment } = makeConfirmSteps(fixture);
const { connection } = solana.client;
const isSend = ({ method }: { method: string }) => method === "sendTransaction";

afterEach(async () => {
  for (const { fault, alter } of [first, second]) {
    alter(undefined);
    fault.refuse(false);
    fault.fail(undefined);
    fault.dropAnswers(undefined);
    fault.onAnswer(undefined);
    fault.hold(undefined);
  }
  await solana.knobs.drop(0);
  await solana.knobs.hold(0);
  await solana.knobs.setSlotMs(solana.slotMs);
  await solana.knobs.resume();
});

/** A payment that was accepted and not submitted. */
async function makeAccepted() {
  // A blockhash is reused for a second, and a jump of the cluster may have expired it.
  fixture.clock.advance(1_000);
  const begun = await begin(await fundSolanaBuyer(solana, 1_000_000n));
  expect(await confirmAndVerify(begun, signAsWallet(begun.transaction, begun.buyer))).toBe("verified");
  return begun;
}
/** Records the bytes of every send that reaches an endpoint. */
function recordSends(): string[] {
  const sent: string[] = [];
  const hook = (method: string, [bytes]: unknown[]) => method === "sendTransaction" && sent.push(String(bytes));
  for (const { fault } of [first, second]) fault.onAnswer(hook);
  return sent;
}
const onlyRow = async (paymentId: string) => {
  const { transfers, transactions } = await rowsOf(paymentId);
  const [transaction] = transactions;
  if (transactions.length !== 1 || !transaction) throw new Error(`there are ${transactions.length} transactions`);
  return { transaction, transfer: transfers[0]?.state, state: (await fixture.status(paymentId)).state };
};
/**
 * Runs two passes that check everything, each five slots later, and returns the first error. On a slow machine, a pass does not
 * wait until its search ends, and the next pass gets what it finds.
 */
async function watchLater(): Promise<{ code?: string } | undefined> {
  let thrown: { code?: string } | undefined;
  for (let pass = 0; pass < 2; pass += 1) {
    await solana.knobs.jump(5);
    await fixture.watch().catch((error: { code?: string }) => {
      thrown ??= error;
    });
  }
  return thrown;
}
const landedOf = async (signature: string) =>
  (await connection.getSignatureStatuses([signature], { searchTransactionHistory: true })).value[0];

describe("a buyer's transaction", () => {
  test("a buyer's transaction is stored completely before any endpoint gets it", async () => {
    const lastValidHeight = async () => (await connection.getLatestBlockhash("processed")).lastValidBlockHeight;
    const before = await lastValidHeight();
    const { paymentId } = await makeAccepted();
    const after = await lastValidHeight();
    const stored: unknown[] = [];
    const lastHeights: number[] = [];
    first.fault.onAnswer(async (method, [bytes]) => {
      if (method !== "sendTransaction") return;
      const raw = Buffer.from(String(bytes), "base64");
      const row = (await fixture.transactions()).find(({ hash }) => hash === firstSignature(raw));
      stored.push({ bytes: row?.bytes.equals(raw), state: row?.state, transfer: (await onlyRow(paymentId)).transfer });
      lastHeights.push(row?.last_valid_height ?? 0);
    });
    await fixture.submit();
    expect(stored).toEqual([{ bytes: true, state: "signed", transfer: "assigned" }]);
    // It may be declared expired a little later, and never earlier.
    expect(lastHeights[0]).toBeGreaterThanOrEqual(before);
    expect(lastHeights[0]).toBeLessThanOrEqual(after + 32);
    await finishPayment(paymentId);
  });

  test("a transaction that no endpoint accepts is sent to both again by the watcher, with the same bytes, after two seconds", async () => {
    const { paymentId } = await makeAccepted();
    for (const { fault } of [first, second])
      fault.fail((call) => (isSend(call) ? { code: -32_005, message: "Node is behind" } : undefined));
    const goOn = fixture.clock.stop();
    await fixture.submit();
    const { transaction, transfer } = await onlyRow(paymentId);
    expect([transaction.state, transfer]).toEqual(["broadcast", "assigned"]);
    for (const { fault } of [first, second]) fault.fail(undefined);
    const sent = recordSends();
    await fixture.watch();
    expect(sent).toEqual([]);
    fixture.clock.advance(2_000);
    await fixture.watch();
    const bytes = transaction.bytes.toString("base64");
    expect(sent).toEqual([bytes, bytes]);
    goOn();
    await fixture.watchUntilState(paymentId, "succeeded");
  });

  test("a transaction whose first three broadcasts are lost is broadcast a fourth time, and nothing is signed again", async () => {
    const { paymentId } = await makeAccepted();
    const sent = recordSends();
    // The first broadcast goes to one endpoint, and each later one to both.
    await solana.knobs.drop(5);
    // Without time, no send is repeated early, and without slots, the blockhash does not expire on a busy machine.
    await solana.knobs.pause();
    const goOn = fixture.clock.stop();
    await fixture.submit();
    for (let run = 0; run < 3; run += 1) {
      expect((await onlyRow(paymentId)).state).toBe("processing");
      fixture.clock.advance(2_000);
      await fixture.watch();
      await fixture.watch();
    }
    await solana.knobs.resume();
    await fixture.watchUntilState(paymentId, "succeeded");
    goOn();
    expect(sent).toHaveLength(7);
    expect(new Set(sent).size).toBe(1);
    const { transaction } = await onlyRow(paymentId);
    expect(await fixture.status(paymentId)).toMatchObject({ info: { txId: transaction.hash } });
  });

  test("a transaction whose response is lost after the endpoint accepted it stays in flight and is not signed again", async () => {
    const { paymentId, buyer } = await makeAccepted();
    for (const { fault } of [first, second]) fault.dropAnswers(isSend);
    await fixture.submit();
    expect((await onlyRow(paymentId)).transaction.state).toBe("broadcast");
    for (const { fault } of [first, second]) fault.dropAnswers(undefined);
    await fixture.submit();
    await fixture.watchUntilState(paymentId, "succeeded");
    await onlyRow(paymentId);
    expect(await tokenBalance(solana, buyer.address)).toBe(0n);
  });

  /** Adds `count` copies of a payment's accepted transfer, as of other payments. Returns a function that removes them. */
  async function copyAccepted(paymentId: string, count: number): Promise<() => Promise<unknown>> {
    const payments = await Promise.all(Array.from({ length: count }, () => fixture.create()));
    const rows = await fixture.db.selectFrom("transfer").selectAll().where("payment_id", "=", paymentId).execute();
    const copies = payments.flatMap((id) =>
      rows.map((row) => {
        const nonce = `0x${randomBytes(32).toString("hex")}`;
        return { ...row, id: `${row.id}${id}`, payment_id: id, authorization_nonce: nonce };
      }),
    );
    await fixture.db.insertInto("transfer").values(copies).execute();
    return () => fixture.db.deleteFrom("transfer").where("payment_id", "in", payments).execute();
  }

  test.each([0, 120])(
    "a payment is sent while an endpoint is asked for the blockhash of one that has waited, which is sent afterwards, with %i others that have waited",
    async (others) => {
      const late = await makeAccepted();
      const removeOthers = others > 0 ? await copyAccepted(late.paymentId, others) : undefined;
      fixture.clock.advance(10_000);
      const { paymentId } = await makeAccepted();
      const sentFor = async (id: string) => (await rowsOf(id)).transactions.length;
      // Without slots, no blockhash expires on a busy machine.
      await solana.knobs.pause();
      const { promise, resolve } = Promise.withResolvers<void>();
      onTestFinished(() => resolve());
      second.fault.hold(({ method }) => (method === "isBlockhashValid" ? promise : undefined));
      const submitted = fixture.submit();
      await waitFor(async () => (await sentFor(paymentId)) === 1, { within: 10_000 });
      await submitted;
      expect(await sentFor(late.paymentId)).toBe(0);
      await removeOthers?.();
      resolve();
      await expect.poll(() => fixture.submit().then(() => sentFor(late.paymentId)), { timeout: 30_000 }).toBe(1);
      await solana.knobs.resume();
      for (const id of [paymentId, late.paymentId]) await fixture.watchUntilState(id, "succeeded");
    },
  );

  test("a transaction that fails on chain ends its payment once the failure is final, and not earlier", async () => {
    // The blockhash is valid for 150 slots, and the held transaction uses 100 of them.
    await solana.knobs.setSlotMs(200);
    const { paymentId, buyer } = await makeAccepted();
    const other = newSolanaKey().address;
    await fundTokens(solana.client, solana.mint, [other], 0n);
    await solana.knobs.hold(100);
    await fixture.submit();
    await solana.knobs.hold(0);
    await moveTokens({ solana, from: buyer, to: other, amount: 1_000_000n });
    await solana.knobs.pause();
    await solana.knobs.jump(100);
    await solana.knobs.jump(1);
    await fixture.watch();
    const { transaction, ...rest } = await onlyRow(paymentId);
    expect(rest).toEqual({ state: "processing", transfer: "assigned" });
    expect(transaction).toMatchObject({ state: "included", reverted: true });
    await solana.knobs.setSlotMs(solana.slotMs);
    await solana.knobs.resume();
    await fixture.watchUntilState(paymentId, "expired");
    expect((await landedOf(transaction.hash))?.confirmationStatus).toBe("finalized");
    expect(await onlyRow(paymentId)).toMatchObject({
      transfer: "ended",
      transaction: { state: "final", fee: 10_000n },
    });
    const spent = await fixture.db
      .selectFrom("ledger_group")
      .select("kind")
      .where("tx_hash", "=", transaction.hash)
      .execute();
    expect(spent).toEqual([{ kind: "gas" }]);
  });
});

describe("a transaction whose blockhash has expired", () => {
  /** A transaction that was sent, lost by every endpoint, and whose blockhash expired long ago. */
  async function makeExpired() {
    const begun = await makeAccepted();
    await solana.knobs.drop("all");
    await fixture.submit();
    // An endpoint that an earlier test has broken reports its height, after which the blockhash expires, a few seconds later.
    const isBounded = async () => {
      await watchLater();
      return (await onlyRow(begun.paymentId)).transaction.signed_height !== null;
    };
    await waitFor(isBounded, { within: 30_000 });
    await solana.knobs.jump(250);
    return begun;
  }
  const expectInFlight = async (paymentId: string) =>
    expect(await onlyRow(paymentId)).toMatchObject({ state: "processing", transfer: "assigned" });

  test("a payment that an unread transaction names is neither sent nor ended before it is read", async () => {
    const { paymentId } = await makeAccepted();
    const only = async () => {
      const { transfers, transactions } = await rowsOf(paymentId);
      return { state: transfers[0]?.state, sent: transactions.length };
    };
    const nonces = (await rowsOf(paymentId)).transfers.map((one) => one.authorization_nonce);
    const [token] = fixture.chain.tokens.values();
    const place = { chain: solana.id, account: token?.treasuryAccount ?? "", signature: "unread", slot: 1 };
    const attempts = { attempts_made: 8, due_at: new Date(Date.now() + 3_600_000), last_error: "unreadable" };
    await fixture.db
      .insertInto("history_entry")
      .values({ ...place, listed_after: null, nonces, urgent: true, ...attempts })
      .execute();
    await fixture.submit();
    await solana.knobs.jump(400);
    expect(await watchLater()).toBeUndefined();
    expect(await only()).toEqual({ state: "ready", sent: 0 });
    await fixture.db.deleteFrom("history_entry").where("signature", "=", "unread").execute();
    expect(await watchLater()).toBeUndefined();
    expect(await only()).toEqual({ state: "ended", sent: 0 });
  });

  test("a transaction with an expired blockhash ends its payment, and no other is ever signed for it", async () => {
    const { paymentId, buyer } = await makeExpired();
    expect(await watchLater()).toBeUndefined();
    expect(await onlyRow(paymentId)).toMatchObject({
      state: "expired",
      transfer: "ended",
      transaction: { state: "expired" },
    });
    await solana.knobs.drop(0);
    fixture.clock.advance(10_000);
    await fixture.submit();
    await watchLater();
    expect((await onlyRow(paymentId)).transaction.state).toBe("expired");
    expect(await tokenBalance(solana, buyer.address)).toBe(1_000_000n);
  });

  test("a transaction stays in flight until the height that expires its blockhash is final", async () => {
    const begun = await makeAccepted();
    await solana.knobs.pause();
    await solana.knobs.drop("all");
    await fixture.submit();
    await solana.knobs.jump(5);
    await fixture.watch();
    const { transaction } = await onlyRow(begun.paymentId);
    const last = findExpiryHeight(transaction) ?? 0;
    expect(last).toBeGreaterThanOrEqual(transaction.last_valid_height ?? 0);
    const finalHeight = async () => (await connection.getEpochInfo("finalized")).blockHeight ?? 0;
    await solana.knobs.jump(last - (await finalHeight()));
    expect(await connection.getBlockHeight("processed")).toBeGreaterThan(last);
    await fixture.watch();
    await fixture.watch();
    await expectInFlight(begun.paymentId);
    await solana.knobs.jump(1);
    await fixture.watch();
    await fixture.watch();
    expect((await onlyRow(begun.paymentId)).state).toBe("expired");
    await solana.knobs.resume();
  });

  /** Makes both endpoints keep only the blocks after a height. */
  async function keepAfter(height: number): Promise<void> {
    const slot = await connection.getSlot("finalized");
    for (const { alter } of [first, second])
      alter((method, _params, result) => {
        if (method === "getFirstAvailableBlock") return slot;
        return method === "getBlock" ? { ...(result as object), blockHeight: height } : result;
      });
  }

  test("a payment whose blocks both endpoints have deleted stays in processing, because its transaction may have been included", async () => {
    const { paymentId } = await makeExpired();
    const { transaction } = await onlyRow(paymentId);
    const last = transaction.last_valid_height ?? 0;
    await keepAfter(last - 100);
    for (let pass = 0; pass < 3; pass += 1) expect(await watchLater()).toBeUndefined();
    await expectInFlight(paymentId);
    // Endpoints that keep the blocks show that it was not.
    await keepAfter(0);
    await watchLater();
    expect((await onlyRow(paymentId)).state).toBe("expired");
  });

  test.each<[string, string | undefined, () => void]>([
    ["one endpoint is unavailable", "rpc_unreachable", () => second.fault.refuse(true)],
    [
      "one endpoint returns errors",
      "rpc_unreachable",
      () =>
        second.fault.fail(({ method }) =>
          method === "getSignatureStatuses"
            ? { code: -32_011, message: "Transaction history is not available" }
            : undefined,
        ),
    ],
    ["one endpoint is far behind", "rpc_behind", () => second.forget(1_000)],
    ["both endpoints are far behind", "rpc_behind", () => [first, second].map((one) => one.forget(1_000))],
    [
      "one endpoint reports the transaction",
      undefined,
      () =>
        second.alter((method, _params, result) => {
          if (method !== "getSignatureStatuses") return result;
          const { context, value } = result as { context: { slot: number }; value: unknown[] };
          const seen = { slot: context.slot - 200, confirmations: 1, err: null, confirmationStatus: "confirmed" };
          return { context, value: value.map(() => seen) };
        }),
    ],
  ])("a transaction with an expired blockhash stays in flight while %s", async (_, code, breakEndpoint) => {
    const { paymentId } = await makeExpired();
    breakEndpoint();
    for (let pass = 0; pass < 3; pass += 1) expect((await watchLater())?.code).toBe(code);
    await expectInFlight(paymentId);
    for (const { alter, fault } of [first, second]) {
      alter(undefined);
      fault.refuse(false);
      fault.fail(undefined);
    }
    await watchLater();
    expect((await onlyRow(paymentId)).state).toBe("expired");
  });

  test("a height that one endpoint invents expires neither a transaction in flight nor one that was never submitted", async () => {
    const sent = await makeAccepted();
    await solana.knobs.drop("all");
    await fixture.submit();
    await solana.knobs.drop(0);
    const unsent = await makeAccepted();
    await solana.knobs.drop("all");
    first.alter((method, _params, result) =>
      method === "getEpochInfo" ? { ...(result as object), blockHeight: 1_000_000_000 } : result,
    );
    for (let pass = 0; pass < 3; pass += 1) expect(await watchLater()).toBeUndefined();
    await expectInFlight(sent.paymentId);
    expect((await rowsOf(unsent.paymentId)).transfers).toMatchObject([{ state: "ready" }]);
    await solana.knobs.drop(0);
    fixture.clock.advance(2_000);
    await fixture.submit();
    for (const { paymentId } of [sent, unsent]) await fixture.watchUntilState(paymentId, "succeeded");
  });

  test("a transaction with an expired blockhash does not delay other payments while an endpoint is unavailable", async () => {
    const { paymentId } = await makeExpired();
    await solana.knobs.drop(0);
    const other = await makeAccepted();
    second.fault.refuse(true);
    fixture.clock.advance(120_000);
    await fixture.submit();
    const watchErrors: unknown[] = [];
    const isFinal = async () => {
      await fixture.watch().catch((error: unknown) => watchErrors.push(error));
      return (await onlyRow(other.paymentId)).transaction.state === "final";
    };
    await waitFor(isFinal, { within: 30_000 });
    expect(watchErrors.length).toBeGreaterThan(0);
    expect((await fixture.status(other.paymentId)).state).toBe("succeeded");
    // Payouts wait for a watcher that is at the head, and not for the endpoint.
    const reached = await findReachedHead(fixture.db, solana.id);
    expect(fixture.clock.now().getTime() - (reached?.getTime() ?? 0)).toBeLessThan(60_000);
    await expectInFlight(paymentId);
  });

  test("a payment that was never submitted delays no other one while an endpoint does not answer, and ends when it does", async () => {
    const { paymentId } = await makeAccepted();
    await solana.knobs.jump(250);
    const other = await makeAccepted();
    const { promise, resolve } = Promise.withResolvers<void>();
    onTestFinished(() => resolve());
    let asked = 0;
    second.fault.hold(({ method, params }) => {
      if (method !== "getEpochInfo") return undefined;
      // The search asks for the confirmed height, and each full pass for the final one.
      if (JSON.stringify(params).includes("confirmed")) asked += 1;
      return promise;
    });
    // Runs out before the endpoint's time limit, after which a search fails.
    const signal = AbortSignal.timeout(50_000);
    await fixture.submit();
    for (let state = ""; state !== "succeeded"; state = (await onlyRow(other.paymentId)).state) {
      expect(await watchLater()).toBeUndefined();
      expect(signal.aborted).toBe(false);
    }
    expect(asked).toBe(1);
    expect((await fixture.status(paymentId)).state).toBe("processing");
    second.fault.hold(undefined);
    resolve();
    await fixture.watchUntilState(paymentId, "expired");
  });

  test("a transaction that was never submitted can be submitted until the height that expires its blockhash is final and the history is listed", async () => {
    const { paymentId } = await makeAccepted();
    await solana.knobs.pause();
    const last = (await rowsOf(paymentId)).transfers[0]?.last_valid_height ?? 0;
    const finalHeight = async () => (await connection.getEpochInfo("finalized")).blockHeight ?? 0;
    await solana.knobs.jump(last - (await finalHeight()));
    expect(await finalHeight()).toBe(last);
    for (let pass = 0; pass < 2; pass += 1) await fixture.watch();
    expect((await rowsOf(paymentId)).transfers).toMatchObject([{ state: "ready" }]);
    expect((await fixture.status(paymentId)).state).toBe("processing");
    // A listing ends some slots before the final one.
    await solana.knobs.jump(20);
    await fixture.watchOnly();
    expect((await fixture.status(paymentId)).state).toBe("processing");
    for (let pass = 0; pass < 2; pass += 1) await fixture.watch();
    expect((await fixture.status(paymentId)).state).toBe("expired");
    await solana.knobs.resume();
  });

  test("a transaction that expires before it was submitted ends its payment and is never signed", async () => {
    const { paymentId, buyer } = await makeAccepted();
    await solana.knobs.jump(250);
    await watchLater();
    expect((await fixture.status(paymentId)).state).toBe("expired");
    await fixture.submit();
    expect((await rowsOf(paymentId)).transactions).toEqual([]);
    expect(await tokenBalance(solana, buyer.address)).toBe(1_000_000n);
  });
});

describe("an endpoint that lags", () => {
  test("a lagging endpoint reverts nothing, and nothing that has landed is sent again", async () => {
    const shop = await makeSolanaMerchantFixture(solana, {
      rpcUrls: [first.fault.url, second.fault.url],
      change: { finality: "finalized" },
    });
    const buyer = await fundSolanaBuyer(solana);
    const paymentId = await shop.create();
    await shop.verify(await shop.attempt(paymentId, buyer));
    await solana.knobs.pause();
    await shop.submit();
    await solana.knobs.jump(1);
    const stateOf = async () => (await shop.transfers()).map(({ state }) => state);
    await shop.watch();
    await shop.watch();
    expect(await stateOf()).toEqual(["included"]);
    const sent = recordSends();
    first.forget();
    for (let pass = 0; pass < 4; pass += 1) {
      shop.clock.advance(2_500);
      await shop.watch();
      expect(await stateOf()).toEqual(["included"]);
    }
    expect(sent).toEqual([]);
    // The result is the same from both: two lagging endpoints know no more than one.
    for (const one of [first, second]) one.forget(100);
    await expect(shop.watch()).rejects.toMatchObject({ code: "rpc_behind" });
    expect(await stateOf()).toEqual(["included"]);
    for (const { alter } of [first, second]) alter(undefined);
    await solana.knobs.resume();
    await shop.watchUntilState(paymentId, "succeeded");
    expect(
      (await shop.db.selectFrom("event").select("to_state").where("machine", "=", "transfer").execute()).map(
        (row) => row.to_state,
      ),
    ).toEqual(["ready", "assigned", "included", "confirmed"]);
  });
});
