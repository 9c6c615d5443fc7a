import { sql } from "kysely";
import { expect, test } from "vitest";
import { fundBuyers, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, signOption, unwrap } from "../../../support/merchant-fixture.ts";

const chain = await startChain();

test("an attempt whose refusal cannot be stored does not delay its group: accepted attempts are enqueued and announced", async () => {
  const fixture = await makeMerchantFixture(chain);
  const [one, two, stranger, other] = await fundBuyers(chain, 4);
  if (!one || !two || !stranger || !other) throw new Error("no buyers");
  const payments = [await fixture.create(), await fixture.create(), await fixture.create()];
  const honest = [await fixture.attempt(payments[0] ?? "", one), await fixture.attempt(payments[1] ?? "", two)];
  const [option] = await fixture.offer(payments[2] ?? "", stranger);
  if (!option) throw new Error("no option");
  const { attemptId } = unwrap(await fixture.confirm(payments[2] ?? "", option.id, await signOption(option, other)));
  // Stands for any error of one row, such as a reason with a byte that a text column cannot store.
  await sql`create function refuse_row() returns trigger language plpgsql as $$
    begin raise exception 'invalid byte sequence' using errcode = '22021'; end $$`.execute(fixture.db);
  await sql`create trigger refuse_row before update on attempt for each row
    when (new.state = 'refused') execute function refuse_row()`.execute(fixture.db);
  fixture.enqueued.length = 0;

  const ends = await Promise.allSettled([fixture.verify(...honest), fixture.verify(attemptId ?? "")]);
  expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  expect(await Promise.all(honest.map(fixture.verificationResult))).toEqual(["verified", "verified"]);
  expect(fixture.enqueued.filter(({ queue }) => queue === "relay-transfers")).toHaveLength(1);
  expect(fixture.announced).toEqual(expect.arrayContaining(payments.slice(0, 2)));
  expect(await fixture.verificationResult(attemptId ?? "")).toBe("waiting");

  await sql`drop trigger refuse_row on attempt`.execute(fixture.db);
  await fixture.verify(attemptId ?? "");
  expect(await fixture.verificationResult(attemptId ?? "")).toMatchObject({ refused: expect.any(String) });
});
