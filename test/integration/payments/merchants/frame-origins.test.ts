import { expect, test } from "vitest";
import { addFrameOrigin, listFrameOrigins } from "../../../../payments/buyer-data/frame-origins.ts";
import { createAccount } from "../../../../payments/merchants/accounts.ts";
import { openTestDb } from "../../../support/open-test-db.ts";
import { testActor } from "../../../support/test-actor.ts";

const { db } = await openTestDb(2);
const deps = { db, now: () => new Date() };
const { id: accountId } = await createAccount(deps, { actor: testActor, name: "Shop" });
const insert = (origin: string) =>
  db.insertInto("frame_origin").values({ account_id: accountId, origin, created_at: new Date() }).execute();

test.each([
  "https://wallet.example",
  "https://xn--mnchen-3ya.example",
  "https://a.b-c.example:8443",
  "http://localhost",
  "http://localhost:5173",
])("%s can be added as a frame origin, also twice", async (origin) => {
  for (let times = 0; times < 2; times += 1)
    expect(await addFrameOrigin(deps, { actor: testActor, accountId, origin })).toMatchObject({ ok: true });
  const listed = await listFrameOrigins(deps, accountId);
  expect(listed.filter((one) => one.origin === origin)).toHaveLength(1);
});

test.each([
  "https://wallet.example/",
  "https://wallet.example/path",
  "https://*.example",
  "https://*",
  "*",
  "'self'",
  "https:",
  "http://wallet.example",
  "http://localhost.wallet.example",
  "http://127.0.0.1:5173",
  "https://user@wallet.example",
  "https://wallet.example https://evil.example",
  "https://wallet.example; script-src *",
  "https://wallet.example\nx-header: 1",
  "https://Wallet.example",
  "https://münchen.example",
  "https://[::1]",
  "https://.",
  "wallet.example",
  "null",
  "",
  `https://${"a".repeat(260)}.example`,
])("%j is refused as a frame origin by the function and by the database", async (origin) => {
  expect(await addFrameOrigin(deps, { actor: testActor, accountId, origin })).toMatchObject({
    code: "params_validation",
    message: expect.stringContaining("origin: expected"),
  });
  await expect(insert(origin)).rejects.toThrow(/frame_origin/);
});

test.each(["https://wallet.example:443", "https://wallet.example:99999", "https://1.2.3"])(
  "%s is refused, because browsers serialize this origin differently",
  async (origin) => {
    expect(await addFrameOrigin(deps, { actor: testActor, accountId, origin })).toMatchObject({
      code: "params_validation",
    });
  },
);
