import { expect, test } from "vitest";
import { fundSolanaBuyer, startTestSolana, tokenBalance } from "../../support/solana.ts";
import { makeSolanaTill } from "../../support/solana-till.ts";

const solana = await startTestSolana();
const till = await makeSolanaTill(solana);

test("a buyer without SOL pays, and the merchant is paid out", async () => {
  const buyer = await fundSolanaBuyer(solana);
  const paymentId = await till.pay(buyer);
  const status = await till.status(paymentId);
  expect(status).toMatchObject({ state: "succeeded", isFinal: true });
  expect(await tokenBalance(solana, till.keys.treasury.address)).toBe(1_000_000n);
  const { id } = await till.settlementOf(paymentId);
  expect(await till.settle(id)).toEqual(["begun"]);
  await till.submit();
  await till.watchUntil(async () => (await till.settlementOf(paymentId)).state === "paid");
  expect(await tokenBalance(solana, till.destination)).toBe(1_000_000n);
});
