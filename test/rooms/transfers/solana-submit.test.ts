import { afterEach, describe, expect, test } from "vitest";
import { firstSignature } from "../../../chains/solana/transactions.ts";
import { findReachedHead } from "../../../db/cursors.ts";
import { newSolanaKey } from "../../../ops/local/solana-client.ts";
import { signAsWallet } from "../../../ops/local/solana-wallet.ts";
import { fundTokens } from "../../../ops/local/spl.ts";
import { fundSolanaBuyer, startTestSolana, tokenBalance } from "../../support/solana.ts";
import { confirmsOf } from "../../support/solana-confirm.ts";
import { startEndpoint } from "../../support/solana-endpoints.ts";
import { makeSolanaTill } from "../../support/solana-till.ts";
import { moveTokens } from "../../support/solana-tokens.ts";
import { waitFor } from "../../support/wait-for.ts";

const solana = await startTestSolana();
const [first, second] = [await startEndpoint(solana), await startEndpoint(solana)];
const till = await makeSolanaTill(solana, { rpcUrls: [first.fault.url, second.fault.url] });
const { begin, rowsOf, judge, carryThrough } = confirmsOf(till);
const { connection } = solana.client;
const isSend = ({ method }: { method: string }) => method === "sendTransaction";

afterEach(async () => {
  for (const { fault, alter } of [first, second]) {
    alter(undefined);
    fault.refuse(false);
    fault.fail(undefined);
    fault.dropAnswers(undefined);
    fault.onAnswer(undefined);
  }
  await solana.knobs.drop(0);
  await solana.knobs.hold(0);
});

/** A payment that was accepted and not submitted. */
async function accepted() {
  // A blockhash is given out for a second, and jumps may have ended it.
  till.clock.advance(1_000);
  const begun = await begin(await fundSolanaBuyer(solana, 1_000_000n));
  expect(await judge(begun, signAsWallet(begun.transaction, begun.buyer))).toBe("verified");
  return begun;
}
/** Bytes of every send that reaches an endpoint. */
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
  return { transaction, transfer: transfers[0]?.state, state: (await till.status(paymentId)).state };
};
/** A turn that looks at everything, five slots later. Gives what it threw. */
async function look(): Promise<{ code?: string } | undefined> {
  await solana.knobs.jump(5);
  return till.watch().then(
    () => undefined,
    (error: unknown) => error as { code: string },
  );
}
const landedOf = async (signature: string) =>
  (await connection.getSignatureStatuses([signature], { searchTransactionHistory: true })).value[0];

describe("a buyer's transaction", () => {
  test("is stored whole before any endpoint gets it", async () => {
    const lastHeight = async () => (await connection.getLatestBlockhash("processed")).lastValidBlockHeight;
    const before = await lastHeight();
    const { paymentId } = await accepted();
    const after = await lastHeight();
    const stored: unknown[] = [];
    first.fault.onAnswer(async (method, [bytes]) => {
      if (method !== "sendTransaction") return;
      const raw = Buffer.from(String(bytes), "base64");
      const row = (await till.transactions()).find(({ hash }) => hash === firstSignature(raw));
      stored.push({ bytes: row?.bytes.equals(raw), state: row?.state, transfer: (await onlyRow(paymentId)).transfer });
      // It may take a little longer to be called dead, and never less.
      expect(row?.last_valid_height).toBeGreaterThanOrEqual(before);
      expect(row?.last_valid_height).toBeLessThanOrEqual(after + 32);
    });
    await till.submit();
    expect(stored).toEqual([{ bytes: true, state: "signed", transfer: "carried" }]);
    await carryThrough(paymentId);
  });

  test("that no endpoint would take is sent again by the watcher, the same bytes, after two seconds", async () => {
    const { paymentId } = await accepted();
    for (const { fault } of [first, second])
      fault.fail((call) => (isSend(call) ? { code: -32_005, message: "Node is behind" } : undefined));
    await till.submit();
    const { transaction, transfer } = await onlyRow(paymentId);
    expect([transaction.state, transfer]).toEqual(["offered", "carried"]);
    for (const { fault } of [first, second]) fault.fail(undefined);
    const sent = recordSends();
    await till.watch();
    expect(sent).toEqual([]);
    till.clock.advance(2_000);
    await till.watch();
    expect(sent).toEqual([transaction.bytes.toString("base64")]);
    await till.watchUntilState(paymentId, "succeeded");
  });

  test("whose first three sends are lost is sent a fourth time, and nothing is signed anew", async () => {
    const { paymentId } = await accepted();
    const sent = recordSends();
    await solana.knobs.drop(3);
    await till.submit();
    for (let again = 0; again < 3; again += 1) {
      expect((await onlyRow(paymentId)).state).toBe("processing");
      till.clock.advance(2_000);
      await till.watch();
      await till.watch();
    }
    await till.watchUntilState(paymentId, "succeeded");
    expect(sent).toHaveLength(4);
    expect(new Set(sent).size).toBe(1);
    const { transaction } = await onlyRow(paymentId);
    expect(await till.status(paymentId)).toMatchObject({ info: { txId: transaction.hash } });
  });

  test("whose answer is lost after it was taken is on its way, and is not signed again", async () => {
    const { paymentId, buyer } = await accepted();
    for (const { fault } of [first, second]) fault.dropAnswers(isSend);
    await till.submit();
    expect((await onlyRow(paymentId)).transaction.state).toBe("offered");
    for (const { fault } of [first, second]) fault.dropAnswers(undefined);
    await till.submit();
    await till.watchUntilState(paymentId, "succeeded");
    await onlyRow(paymentId);
    expect(await tokenBalance(solana, buyer.address)).toBe(0n);
  });

  test("that fails on chain has ended its payment, once that is final and not before", async () => {
    const { paymentId, buyer } = await accepted();
    const other = newSolanaKey().address;
    await fundTokens(solana.client, solana.mint, [other], 0n);
    await solana.knobs.setSlotMs(200);
    await solana.knobs.hold(100);
    await till.submit();
    await solana.knobs.hold(0);
    await moveTokens({ solana, from: buyer, to: other, amount: 1_000_000n });
    await solana.knobs.pause();
    await solana.knobs.jump(100);
    await solana.knobs.jump(1);
    await till.watch();
    const { transaction, ...rest } = await onlyRow(paymentId);
    expect(rest).toEqual({ state: "processing", transfer: "carried" });
    expect(transaction).toMatchObject({ state: "included", reverted: true });
    await solana.knobs.setSlotMs(20);
    await solana.knobs.resume();
    await till.watchUntilState(paymentId, "expired");
    expect((await landedOf(transaction.hash))?.confirmationStatus).toBe("finalized");
    expect(await onlyRow(paymentId)).toMatchObject({
      transfer: "ended",
      transaction: { state: "final", fee: 10_000n },
    });
    const spent = await till.db
      .selectFrom("ledger_group")
      .select("kind")
      .where("tx_hash", "=", transaction.hash)
      .execute();
    expect(spent).toEqual([{ kind: "gas" }]);
  });
});

describe("a transaction whose blockhash has died", () => {
  /** Sent, and lost by every endpoint; its time is over by far. */
  async function dead() {
    const begun = await accepted();
    await solana.knobs.drop("all");
    await till.submit();
    await solana.knobs.jump(250);
    return begun;
  }
  const expectOnItsWay = async (paymentId: string) =>
    expect(await onlyRow(paymentId)).toMatchObject({ state: "processing", transfer: "carried" });

  test("has ended its payment, and no other is ever signed for it", async () => {
    const { paymentId, buyer } = await dead();
    expect(await look()).toBeUndefined();
    expect(await onlyRow(paymentId)).toMatchObject({
      state: "expired",
      transfer: "ended",
      transaction: { state: "expired" },
    });
    await solana.knobs.drop(0);
    till.clock.advance(10_000);
    await till.submit();
    await look();
    expect((await onlyRow(paymentId)).transaction.state).toBe("expired");
    expect(await tokenBalance(solana, buyer.address)).toBe(1_000_000n);
  });

  test("is on its way until the height is final that ends it", async () => {
    const begun = await accepted();
    await solana.knobs.pause();
    await solana.knobs.drop("all");
    await till.submit();
    const { transaction } = await onlyRow(begun.paymentId);
    const last = transaction.last_valid_height ?? 0;
    const finalHeight = async () => (await connection.getEpochInfo("finalized")).blockHeight ?? 0;
    await solana.knobs.jump(last - (await finalHeight()));
    expect(await connection.getBlockHeight("processed")).toBeGreaterThan(last);
    await till.watch();
    await till.watch();
    await expectOnItsWay(begun.paymentId);
    await solana.knobs.jump(1);
    await till.watch();
    await till.watch();
    expect((await onlyRow(begun.paymentId)).state).toBe("expired");
    await solana.knobs.resume();
  });

  test.each<[string, string | undefined, () => void]>([
    ["one endpoint is away", "rpc_unreachable", () => second.fault.refuse(true)],
    [
      "one endpoint answers with errors",
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
      "one endpoint says that it has seen it",
      undefined,
      () =>
        second.alter((method, _params, result) => {
          if (method !== "getSignatureStatuses") return result;
          const { context, value } = result as { context: { slot: number }; value: unknown[] };
          const seen = { slot: context.slot - 200, confirmations: 1, err: null, confirmationStatus: "confirmed" };
          return { context, value: value.map(() => seen) };
        }),
    ],
  ])("is on its way while %s", async (_, code, spoil) => {
    const { paymentId } = await dead();
    spoil();
    for (let turn = 0; turn < 3; turn += 1) expect((await look())?.code).toBe(code);
    await expectOnItsWay(paymentId);
    for (const { alter, fault } of [first, second]) {
      alter(undefined);
      fault.refuse(false);
      fault.fail(undefined);
    }
    await look();
    expect((await onlyRow(paymentId)).state).toBe("expired");
  });

  test("does not keep the payments beside it from being made while an endpoint is away", async () => {
    const { paymentId } = await dead();
    await solana.knobs.drop(0);
    const other = await accepted();
    second.fault.refuse(true);
    till.clock.advance(120_000);
    await till.submit();
    const spoilt: unknown[] = [];
    const isFinal = async () => {
      await till.watch().catch((error: unknown) => spoilt.push(error));
      return (await onlyRow(other.paymentId)).transaction.state === "final";
    };
    await waitFor(isFinal, { within: 10_000 });
    expect(spoilt.length).toBeGreaterThan(0);
    expect((await till.status(other.paymentId)).state).toBe("succeeded");
    // Payouts wait for a watcher that stands at the head, and not for the endpoint.
    const reached = await findReachedHead(till.db, solana.id);
    expect(till.clock.now().getTime() - (reached?.getTime() ?? 0)).toBeLessThan(60_000);
    await expectOnItsWay(paymentId);
  });

  test("before anybody submitted it is kept until the height is final that ends it, and may still be submitted", async () => {
    const { paymentId } = await accepted();
    await solana.knobs.pause();
    const last = (await rowsOf(paymentId)).transfers[0]?.valid_before ?? 0;
    const finalHeight = async () => (await connection.getEpochInfo("finalized")).blockHeight ?? 0;
    await solana.knobs.jump(last - (await finalHeight()));
    expect(await finalHeight()).toBe(last);
    for (let turn = 0; turn < 2; turn += 1) await till.watch();
    expect((await rowsOf(paymentId)).transfers).toMatchObject([{ state: "ready" }]);
    expect((await till.status(paymentId)).state).toBe("processing");
    await solana.knobs.jump(1);
    for (let turn = 0; turn < 2; turn += 1) await till.watch();
    expect((await till.status(paymentId)).state).toBe("expired");
    await solana.knobs.resume();
  });

  test("before anybody submitted it has ended its payment, and is never signed", async () => {
    const { paymentId, buyer } = await accepted();
    await solana.knobs.jump(250);
    await look();
    expect((await till.status(paymentId)).state).toBe("expired");
    await till.submit();
    expect((await rowsOf(paymentId)).transactions).toEqual([]);
    expect(await tokenBalance(solana, buyer.address)).toBe(1_000_000n);
  });
});

describe("an endpoint that lags", () => {
  test("takes nothing back, and nothing that has landed is sent again", async () => {
    const shop = await makeSolanaTill(solana, {
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
    for (let turn = 0; turn < 4; turn += 1) {
      shop.clock.advance(2_500);
      await shop.watch();
      expect(await stateOf()).toEqual(["included"]);
    }
    expect(sent).toEqual([]);
    // The same from both of them: two that lag know no more than one.
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
    ).toEqual(["ready", "carried", "included", "confirmed"]);
  });
});
