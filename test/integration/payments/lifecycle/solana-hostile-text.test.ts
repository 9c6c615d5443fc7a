import { sql } from "kysely";
import { expect, test } from "vitest";
import { isCaughtUp } from "../../../support/is-caught-up.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, sendTokens, startTestSolana } from "../../../support/test-solana.ts";

const solana = await startTestSolana();
const fixture = await makeSolanaMerchantFixture(solana);

const memos: [string, string, string][] = [
  ["a zero byte", "\0", "\ufffd"],
  ["a terminal escape and a line break", "\u001b[31m\nfee paid", "\ufffd[31m fee paid"],
  ["a surrogate pair at the place where the text is cut", `${"a".repeat(199)}😀b`, `${"a".repeat(199)}…`],
];

test.each(memos)(
  "a third party's transfer with a memo of %s is booked, and later payouts begin",
  async (_name, memo, shown) => {
    const stranger = await fundSolanaBuyer(solana);
    const to = fixture.keys.treasury.address;
    await sendTokens(solana, { from: stranger, to, amount: 1n, memo });
    const observations = () =>
      fixture.db
        .selectFrom("observation")
        .selectAll()
        .where(sql<boolean>`payer = ${stranger.address}`)
        .where("booked", "=", true)
        .execute();
    await fixture.watchUntil(async () => (await observations()).length === 1);
    expect(await observations()).toMatchObject([{ amount: 1n, authorization_nonce: shown }]);
    const paymentId = await fixture.pay(await fundSolanaBuyer(solana));
    expect(await isCaughtUp(fixture.deps, solana.id)).toBe(true);
    expect(await fixture.settle((await fixture.settlementOf(paymentId)).id)).toEqual(["begun"]);
    await fixture.submit();
    await fixture.watchUntil(async () => (await fixture.settlementOf(paymentId)).state === "paid");
  },
);
