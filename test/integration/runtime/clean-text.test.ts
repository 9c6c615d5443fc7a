import fc from "fast-check";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { cleanText, isStorable } from "../../../runtime/clean-text.ts";
import { openTestDb } from "../../support/open-test-db.ts";

const { db } = await openTestDb();
const hostile = fc
  .array(fc.oneof(fc.constantFrom(0, 0x1b, 0xd83d, 0xde00), fc.integer({ min: 0, max: 0xffff })), { maxLength: 60 })
  .map((units) => String.fromCharCode(...units));

/** Returns what Postgres reads back from a text and a jsonb value. */
async function writeAndRead(text: string): Promise<unknown> {
  const { rows } = await sql`select ${text}::text as plain, ${JSON.stringify({ text })}::jsonb as document`.execute(db);
  return rows[0];
}

test("Postgres stores every cleaned text unchanged, as text and as jsonb", async () => {
  const texts = ["\0", "\ud800", "a\0b\udc00", "😀".repeat(300), ...fc.sample(hostile, { numRuns: 100 })];
  for (const text of texts.map((given) => cleanText(given, 50)))
    expect(await writeAndRead(text)).toEqual({ plain: text, document: { text } });
});

test("isStorable accepts exactly the texts that Postgres accepts", async () => {
  for (const text of [
    "\0",
    "\ud800",
    "a\udc00b",
    "",
    "\u001b",
    "a\nb",
    "\uffff",
    "😀",
    ...fc.sample(hostile, { numRuns: 100 }),
  ]) {
    const taken = await writeAndRead(text).then(
      (row) => (row as { plain: string }).plain === text,
      () => false,
    );
    expect([text, isStorable(text)]).toEqual([text, taken]);
  }
});
