import { ComputeBudgetProgram, type TransactionInstruction } from "@solana/web3.js";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { signAsWallet } from "../../../../local/solana-buyer.ts";
import { fundSol, newSolanaKey, type SolanaKey } from "../../../../local/solana-client.ts";
import { fundTokens } from "../../../../local/spl-tokens.ts";
import { signChanged } from "../../../support/altered-solana-transaction.ts";
import { makeConfirmSteps } from "../../../support/solana-confirm-steps.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { closeAccount, drainSol, freeze, moveTokens } from "../../../support/solana-token-moves.ts";
import { fundSolanaBuyer, fundSolanaBuyers, startTestSolana, tokenBalance } from "../../../support/test-solana.ts";

const solana = await startTestSolana({ own: true });
const fixture = await makeSolanaMerchantFixture(solana);
const { begin, rowsOf, confirm, confirmAndVerify, treasuryBalance, expectUntouched, finishPayment } =
  makeConfirmSteps(fixture);
const [relayer] = fixture.keys.lanes as [SolanaKey];
const stranger = newSolanaKey();
beforeAll(() => fundTokens(solana.client, solana.mint, [stranger.address], 0n));
/** Changes a transaction's compute unit limit, as a wallet may. */
const withLimit = (units: number) => ({
  instructions: ([, ...rest]: TransactionInstruction[]) => [
    ComputeBudgetProgram.setComputeUnitLimit({ units }),
    ...rest,
  ],
});

describe("the same transaction for two payments", () => {
  test("a transaction confirmed for two payments pays the one it was built for", async () => {
    const buyer = await fundSolanaBuyer(solana);
    const [first, second] = [await begin(buyer), await begin(buyer)];
    const signed = signAsWallet(first.transaction, buyer);
    const held = await treasuryBalance();
    const results = await Promise.all([confirmAndVerify(second, signed), confirmAndVerify(first, signed)]);
    expect(results).toEqual([{ refused: expect.stringContaining("memo") }, "verified"]);
    await finishPayment(first.paymentId);
    await expectUntouched(second.paymentId);
    expect((await treasuryBalance()) - held).toBe(1_000_000n);
  });
});

describe("concurrent confirms of one payment", () => {
  /** Verifies and submits the attempts in two concurrent processes and waits for the payment's success. */
  async function race(paymentId: string, attemptIds: string[]) {
    const other = await fixture.anotherProcess();
    await Promise.all([fixture.verify(...attemptIds), other.verify(...attemptIds.toReversed())]);
    await Promise.all([fixture.submit(), other.submit(), fixture.submit()]);
    await fixture.watchUntilState(paymentId, "succeeded");
  }

  test("concurrent confirms of the same transaction make one attempt and one transaction", async () => {
    const { paymentId, optionId, transaction, buyer } = await begin();
    const signed = signAsWallet(transaction, buyer);
    const held = await treasuryBalance();
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => fixture.attemptWith(paymentId, optionId, signed)),
    );
    expect(new Set(answers).size).toBe(1);
    await race(paymentId, answers);
    expect((await rowsOf(paymentId)).transactions).toHaveLength(1);
    expect((await treasuryBalance()) - held).toBe(1_000_000n);
  });

  test("of concurrent confirms with different transactions of one buyer, the relayer signs exactly one", async () => {
    const begun = await begin();
    const { paymentId, optionId, transaction, buyer } = begun;
    const before = (await fixture.transactions()).length;
    const held = await treasuryBalance();
    const attempts: string[] = [];
    for (const units of [200_000, 300_000, 400_000])
      attempts.push(await fixture.attemptWith(paymentId, optionId, signChanged(transaction, buyer, withLimit(units))));
    await race(paymentId, attempts);
    const results = await Promise.all(attempts.map(fixture.verificationResult));
    expect(results.filter((one) => one === "verified")).toHaveLength(1);
    expect((await fixture.transactions()).length - before).toBe(1);
    expect((await treasuryBalance()) - held).toBe(1_000_000n);
    expect(await confirm(begun, signAsWallet(transaction, buyer))).toMatchObject({ ok: false, code: "invalid_state" });
  });

  test("of concurrent confirms by different buyers, one pays and the others keep their money", async () => {
    const buyers = await fundSolanaBuyers(solana, 3, 1_000_000n);
    const paymentId = await fixture.create();
    const attempts = await Promise.all(buyers.map((buyer) => fixture.attempt(paymentId, buyer)));
    await race(paymentId, attempts);
    const balances = await Promise.all(buyers.map(({ address }) => tokenBalance(solana, address)));
    expect(balances.toSorted()).toEqual([0n, 1_000_000n, 1_000_000n]);
  });
});

describe("verification without a simulation", () => {
  /** Verifies a payment, whose simulation shows how many compute units the payments in its token take. */
  const verifyFirst = async () => {
    const begun = await begin();
    expect(await confirmAndVerify(begun, signAsWallet(begun.transaction, begun.buyer))).toBe("verified");
  };

  test("a payment is not simulated when an earlier one in its token was, and its money is booked", async () => {
    await verifyFirst();
    const begun = await begin();
    await solana.knobs.fail(["simulateTransaction"], 100, "error");
    onTestFinished(() => solana.knobs.fail(["simulateTransaction"], 0, "error"));
    expect(await confirmAndVerify(begun, signAsWallet(begun.transaction, begun.buyer))).toBe("verified");
    await finishPayment(begun.paymentId);
  });

  test("a transaction whose wallet set fewer compute units than a payment takes is simulated", async () => {
    await verifyFirst();
    const begun = await begin();
    const signed = signChanged(begun.transaction, begun.buyer, withLimit(100));
    const attemptId = await fixture.attemptWith(begun.paymentId, begun.optionId, signed);
    await solana.knobs.fail(["simulateTransaction"], 100, "error");
    onTestFinished(() => solana.knobs.fail(["simulateTransaction"], 0, "error"));
    await expect(fixture.verify(attemptId)).rejects.toMatchObject({ name: "ChainError", transient: true });
    expect(await fixture.verificationResult(attemptId)).toBe("waiting");
  });
});

describe("changes since the wallet signed", () => {
  test("a transaction with an expired blockhash is refused, and a newly fetched one pays", async () => {
    const begun = await begin();
    await solana.knobs.jump(151);
    expect(await confirmAndVerify(begun, signAsWallet(begun.transaction, begun.buyer))).toEqual({
      refused: expect.stringContaining("fetch the option's actions again"),
    });
    await expectUntouched(begun.paymentId);
    fixture.clock.advance(1_000);
    const fresh = await fixture.fetchTransaction(begun.paymentId, begun.optionId);
    expect(await confirmAndVerify(begun, signAsWallet(fresh, begun.buyer))).toBe("verified");
    await finishPayment(begun.paymentId);
  });

  test("a buyer who spent the money is refused, and the same confirm pays once the money is back", async () => {
    const begun = await begin(await fundSolanaBuyer(solana, 1_000_000n));
    const { buyer, paymentId } = begun;
    const signed = signAsWallet(begun.transaction, buyer);
    await moveTokens({ solana, from: buyer, to: stranger.address, amount: 1n });
    expect(await confirmAndVerify(begun, signed)).toEqual({ refused: expect.stringContaining("insufficient funds") });
    await expectUntouched(paymentId);
    await fundTokens(solana.client, solana.mint, [buyer.address], 1n);
    expect(await confirmAndVerify(begun, signed)).toBe("verified");
    await finishPayment(paymentId);
  });

  test("a buyer whose account has been frozen or closed is refused", async () => {
    const [frozen, closed] = [await begin(), await begin(await fundSolanaBuyer(solana, 1_000_000n))];
    await freeze({ solana, owner: frozen.buyer.address });
    await moveTokens({ solana, from: closed.buyer, to: stranger.address, amount: 1_000_000n });
    await closeAccount({ solana, owner: closed.buyer });
    for (const begun of [frozen, closed]) {
      const result = await confirmAndVerify(begun, signAsWallet(begun.transaction, begun.buyer));
      expect(result).toEqual({ refused: expect.stringContaining("the transaction would fail") });
      await expectUntouched(begun.paymentId);
    }
  });

  test("an attempt waits while the cluster is unreachable and is verified later", async () => {
    const begun = await begin();
    const attemptId = await fixture.attemptWith(
      begun.paymentId,
      begun.optionId,
      signAsWallet(begun.transaction, begun.buyer),
    );
    const reads = ["simulateTransaction", "getMultipleAccounts"];
    await solana.knobs.fail(reads, 100, "error");
    await expect(fixture.verify(attemptId)).rejects.toMatchObject({ name: "ChainError", transient: true });
    await solana.knobs.fail(reads, 0, "error");
    expect(await fixture.verificationResult(attemptId)).toBe("waiting");
    await fixture.verify(attemptId);
    expect(await fixture.verificationResult(attemptId)).toBe("verified");
    await finishPayment(begun.paymentId);
  });

  test("an attempt waits up to half a minute for a relayer without SOL", async () => {
    const [first, second] = [await begin(), await begin()];
    await drainSol(solana, relayer);
    const attempts: string[] = [];
    for (const { paymentId, optionId, transaction, buyer } of [first, second]) {
      attempts.push(await fixture.attemptWith(paymentId, optionId, signAsWallet(transaction, buyer)));
      await fixture.verify(attempts.at(-1) ?? "");
      expect(await fixture.verificationResult(attempts.at(-1) ?? "")).toBe("waiting");
    }
    const [funded = "", late = ""] = attempts;
    await fundSol(solana.client, [relayer.address]);
    await fixture.verify(funded);
    expect(await fixture.verificationResult(funded)).toBe("verified");
    await finishPayment(first.paymentId);
    await drainSol(solana, relayer);
    fixture.clock.advance(31_000);
    await fixture.verify(late);
    expect(await fixture.verificationResult(late)).toEqual({
      refused: expect.stringContaining("fee cannot be paid now"),
    });
    await expectUntouched(second.paymentId);
    await fundSol(solana.client, [relayer.address]);
  });
});

describe("screening", () => {
  test("screening refuses a payer at the confirm, and the payment stays open to others", async () => {
    const begun = await begin();
    fixture.screened.add(begun.buyer.address);
    expect(await confirmAndVerify(begun, signAsWallet(begun.transaction, begun.buyer))).toEqual({
      refused: expect.stringContaining("not served"),
    });
    await expectUntouched(begun.paymentId);
  });

  test("screening fails the payment of a payer listed after the confirm, nothing is signed, and other payments continue", async () => {
    const [bad, fine] = [await begin(), await begin()];
    for (const begun of [bad, fine])
      expect(await confirmAndVerify(begun, signAsWallet(begun.transaction, begun.buyer))).toBe("verified");
    fixture.screened.add(bad.buyer.address);
    await finishPayment(fine.paymentId);
    expect(await fixture.status(bad.paymentId)).toMatchObject({ state: "failed", failureCode: "declined_user" });
    const { transfers, transactions } = await rowsOf(bad.paymentId);
    expect([transfers.map(({ state }) => state), transactions]).toEqual([["ended"], []]);
    expect(await tokenBalance(solana, bad.buyer.address)).toBe(1_000_000_000n);
  });

  test("no payment passes while screening is down, and all continue afterwards", async () => {
    const begun = await begin();
    const attemptId = await fixture.attemptWith(
      begun.paymentId,
      begun.optionId,
      signAsWallet(begun.transaction, begun.buyer),
    );
    fixture.brokenList.on = true;
    await expect(fixture.verify(attemptId)).rejects.toMatchObject({ code: "screening_down" });
    fixture.brokenList.on = false;
    await fixture.verify(attemptId);
    fixture.brokenList.on = true;
    await expect(fixture.submit()).rejects.toMatchObject({ code: "screening_down" });
    expect((await rowsOf(begun.paymentId)).transactions).toEqual([]);
    fixture.brokenList.on = false;
    await finishPayment(begun.paymentId);
  });
});
