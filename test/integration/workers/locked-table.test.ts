import { sql } from "kysely";
import { expect, test } from "vitest";
import { openDb } from "../../../db/open.ts";
import { isTransient } from "../../../payments/is-transient.ts";
import { createHandlers } from "../../../workers/handlers.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { fundBuyer, startChain } from "../../support/evm-chain.ts";
import { execute } from "../../support/execute-sql.ts";
import { makeMerchantFixture } from "../../support/merchant-fixture.ts";

const aborted = AbortSignal.abort();

/** A fixture with a due payment, transfer, settlement and chain, and a database whose statements end after three seconds. */
async function makeDueFixture() {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  await fixture.pay(await fundBuyer(chain));
  await fixture.verify(await fixture.attempt(await fixture.create(), await fundBuyer(chain)));
  fixture.clock.advance(60_000);
  await fixture.watch();
  await execute(
    fixture.databaseUrl,
    "update payment set due_at = now() where state in ('requires_action', 'processing')",
    "update chain_cursor set due_at = now() - interval '1 second'",
  );
  const db = openDb(fixture.databaseUrl, { statementTimeoutMs: 3_000 });
  addCleanup(() => db.destroy());
  fixture.enqueued.length = 0;
  const sweep = () => createHandlers({ ...fixture.deps, db, isTransient }).sweep({ at: 1 }, aborted);
  const queues = () => new Set(fixture.enqueued.map(({ queue }) => queue));
  return { fixture, sweep, queues };
}

const due = ["expire-payment", "relay-transfers", "settle", "watch-chain"];

test("a sweep enqueues the due work of the other kinds while an operator has locked the table of deliveries", async () => {
  const { fixture, sweep, queues } = await makeDueFixture();
  await fixture.db.transaction().execute(async (operator) => {
    // As `vacuum full webhook_delivery` does.
    await sql`lock table webhook_delivery in access exclusive mode`.execute(operator);
    await expect(sweep(), "the error is reported").rejects.toMatchObject({ code: "57014" });
  });
  expect([...queues()]).toEqual(expect.arrayContaining(due));
});

test("a sweep enqueues the due work of the other kinds while a statement for the payments fails", async () => {
  const { fixture, sweep, queues } = await makeDueFixture();
  await execute(
    fixture.databaseUrl,
    "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'a bad row'; end $$",
    "create trigger refuse before update on payment for each row execute function refuse()",
  );
  await expect(sweep()).rejects.toThrow("a bad row");
  const others = due.filter((queue) => queue !== "expire-payment");
  expect([...queues()]).toEqual(expect.arrayContaining(others));
});

test("a sweep ends at the first kind whose store is unavailable, and postpones no row of the others", async () => {
  const { fixture, sweep, queues } = await makeDueFixture();
  const dueAt = () => execute(fixture.databaseUrl, "select due_at, due_retries from transfer where state = 'ready'");
  const before = await dueAt();
  await execute(
    fixture.databaseUrl,
    "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'full' using errcode = '53100'; end $$",
    "create trigger refuse before update on payment for each row execute function refuse()",
  );
  await expect(sweep()).rejects.toMatchObject({ code: "53100" });
  expect([...queues()]).not.toEqual(expect.arrayContaining(["settle"]));
  expect(await dueAt()).toEqual(before);
});
