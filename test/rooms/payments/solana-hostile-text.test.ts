import { sql } from "kysely";
import { expect, test } from "vitest";
import { isCaughtUp } from "../../../transfers/caught-up.ts";
import { fundSolanaBuyer, sendTokens, startTestSolana } from "../../support/solana.ts";
import { makeSolanaTill } from "../../support/solana-till.ts";

const solana = await startTestSolana();
const till = await makeSolanaTill(solana);

const memos: [string, string, string][] = [
  ["a zero byte", "\0", "\ufffd"],
  ["a terminal's escape and a new line", "\u001b[31m\nfee paid", "\ufffd[31m fee paid"],
  ["half a character at the place where it is cut", `${"a".repeat(199)}😀b`, `${"a".repeat(199)}…`],
];

test.each(memos)(
  "a stranger's transfer with a memo of %s is booked, and a payout begins after it",
  async (_name, memo, shown) => {
    const stranger = await fundSolanaBuyer(solana);
    const to = till.keys.treasury.address;
    await sendTokens(solana, { from: stranger, to, amount: 1n, memo });
    const sightings = () =>
      till.db
        .selectFrom("sighting")
        .selectAll()
        .where(sql<boolean>`payer = ${stranger.address}`)
        .where("booked", "=", true)
        .execute();
    await till.watchUntil(async () => (await sightings()).length === 1);
    expect(await sightings()).toMatchObject([{ amount: 1n, authorization_nonce: shown }]);
    const paymentId = await till.pay(await fundSolanaBuyer(solana));
    expect(await isCaughtUp(till.deps, solana.id)).toBe(true);
    expect(await till.settle((await till.settlementOf(paymentId)).id)).toEqual(["begun"]);
    await till.submit();
    await till.watchUntil(async () => (await till.settlementOf(paymentId)).state === "paid");
  },
);
