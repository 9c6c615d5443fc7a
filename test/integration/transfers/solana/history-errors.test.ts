import { randomBytes } from "node:crypto";
import { PublicKey } from "@solana/web3.js";
import { expect, test } from "vitest";
import { encodeBase58 } from "../../../../chains/solana/base58.ts";
import { postJson } from "../../../../local/post-json.ts";
import { expirePayment } from "../../../../payments/lifecycle/expire-payment.ts";
import { RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { isCaughtUp } from "../../../support/is-caught-up.ts";
import { readSystemStatus } from "../../../support/read-system-status.ts";
import { makeListedFixture, payUnsolicited, waitFinalized } from "../../../support/solana-history.ts";
import type { SolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, sendDust, sendTokens, startTestSolana } from "../../../support/test-solana.ts";
import { waitFor } from "../../../support/wait-for.ts";

const solana = await startTestSolana();
const buyer = await fundSolanaBuyer(solana);
const treasuryOf = (some: SolanaMerchantFixture) => some.keys.treasury.address;
const entries = (some: SolanaMerchantFixture) => some.db.selectFrom("history_entry").selectAll().execute();
const observations = (some: SolanaMerchantFixture) => some.db.selectFrom("observation").selectAll().execute();

/** Makes a deployment with these endpoints. The clock of a test runs ahead of the cluster's, so any age is allowed. */
const startFixture = (rpcUrls: readonly string[]) =>
  makeListedFixture(solana, { rpcUrls, change: { maxHeadAgeMs: null } });

test("a transaction that the first endpoint lacks or cannot return is read from the second one", async () => {
  const poor = await startAlteringProxy({ target: solana.url });
  const some = await startFixture([poor.url, solana.url]);
  const signatures = await sendDust(solana, treasuryOf(some), 3);
  const [missing, broken] = signatures;
  await waitFinalized(solana, ...signatures);
  poor.alter((method, [signature], result) => {
    if (method !== "getTransaction") return result;
    if (signature === missing) return null;
    return signature === broken ? { version: 7 } : result;
  });
  await some.watchUntil(async () => (await observations(some)).length === 3);
});

test.each([
  ["in a slot that is no whole number", { slot: 1.5 }],
  ["in a slot that no column holds", { slot: 1e300 }],
])("a transaction that the first endpoint shows %s is read from the second one", async (_what, change) => {
  const odd = await startAlteringProxy({ target: solana.url });
  const some = await startFixture([odd.url, solana.url]);
  const [sent = ""] = await sendDust(solana, treasuryOf(some), 1);
  await waitFinalized(solana, sent);
  odd.alter((method, _params, result) =>
    method === "getTransaction" && result ? { ...(result as object), ...change } : result,
  );
  await some.watchUntil(async () => (await observations(some)).length === 1);
});

test("a transaction that no endpoint returns is kept and retried, the rest is read, and it soon blocks no payout", async () => {
  const poor = await startAlteringProxy({ target: solana.url });
  const some = await startFixture([poor.url, poor.url]);
  const signatures = await sendDust(solana, treasuryOf(some), 5);
  const [missing] = signatures;
  await waitFinalized(solana, ...signatures);
  poor.alter((method, [signature], result) => (method === "getTransaction" && signature === missing ? null : result));
  await some.watchUntil(async () => (await observations(some)).length === 4);
  expect(await entries(some)).toMatchObject([
    { signature: missing, last_error: expect.stringContaining("does not have") },
  ]);
  const { deps: restarted } = await some.anotherProcess();
  const readLater = async () => {
    some.clock.advance(600_000);
    await some.readHistory();
    await some.watchOnly();
    return isCaughtUp(restarted, solana.id);
  };
  expect(await readLater()).toBe(false);
  // One pass may not reach the head of a cluster on a busy machine.
  await waitFor(readLater, { within: 20_000 });
  expect(some.lines.join("")).toContain("cannot be read");
  expect((await readSystemStatus(some.deps)).history).toMatchObject([{ chain: solana.id, unread: 1, unreadable: 1 }]);
  poor.alter(undefined);
  await readLater();
  expect(await observations(some)).toHaveLength(5);
});

test("an endpoint that has forgotten where the last listing ended duplicates nothing and reverts no payment", async () => {
  const poor = await startAlteringProxy({ target: solana.url });
  const some = await startFixture([poor.url, poor.url]);
  await sendDust(solana, treasuryOf(some), 5);
  const paymentId = await payUnsolicited(solana, some, buyer);
  await some.watchUntilState(paymentId, "succeeded");
  const before = await observations(some);
  const [token] = some.chain.tokens.values();
  const all = await solana.client.connection.getSignaturesForAddress(new PublicKey(token?.treasuryAccount ?? ""));
  poor.alter((method, _params, result) => (method === "getSignaturesForAddress" ? all : result));
  await some.readHistory();
  await some.watch();
  expect(await observations(some)).toEqual(before);
  expect(before.filter(({ transfer_id }) => transfer_id !== null)).toHaveLength(1);
});

const refusal = new RpcRefusal({ code: -32_603, message: "internal" });

/** Makes two payments that end in 45 seconds. Returns the key that a memo names the first one by. */
async function makeTwoPayments(some: SolanaMerchantFixture) {
  const expiresAt = new Date(Date.now() + 45_000);
  const [named, other] = [await some.create(100n, { expiresAt }), await some.create(100n, { expiresAt })];
  for (const paymentId of [named, other]) await some.offer(paymentId, buyer);
  const { authorization_nonce: memo } = await some.db
    .selectFrom("payment_option")
    .select("authorization_nonce")
    .where("payment_id", "=", named)
    .executeTakeFirstOrThrow();
  const isExpired = async (paymentId: string) => {
    await some.watch().catch(() => undefined);
    return (await expirePayment(some.deps, paymentId)).decided;
  };
  return { named, other, memo, expiresAt, isExpired };
}

/** Reads the only entry until it counts as unreadable. */
async function readEightTimes(some: SolanaMerchantFixture): Promise<void> {
  while (((await entries(some))[0]?.attempts_made ?? 0) < 8) {
    await some.readHistory().catch(() => undefined);
    some.clock.advance(60_000);
  }
}

test.each([
  { what: "errors", result: refusal },
  { what: "nothing", result: null },
])(
  "a payment that a transaction names for which endpoints return $what does not expire, others do, and it is paid once it can be read",
  async ({ result: unreadable }) => {
    const poor = await startAlteringProxy({ target: solana.url });
    const some = await startFixture([poor.url, poor.url]);
    const { named: paid, other: unpaid, memo, expiresAt, isExpired } = await makeTwoPayments(some);
    const transfer = { from: buyer, to: treasuryOf(some), amount: 1_000_000n, memo };
    await waitFinalized(solana, await sendTokens(solana, transfer));
    expect(Date.now()).toBeLessThan(expiresAt.getTime());
    poor.alter((method, _params, result) => (method === "getTransaction" ? unreadable : result));
    await readEightTimes(some);
    await waitFor(() => isExpired(unpaid), { within: 90_000 });
    expect(await isExpired(paid)).toBe(false);
    poor.alter(undefined);
    some.clock.advance(60_000);
    await some.watchUntilState(paid, "succeeded");
    expect((await some.status(unpaid)).state).toBe("expired");
  },
);

test("a payment that a transaction names expires when two endpoints have never seen the transaction that one has listed", async () => {
  const liar = await startAlteringProxy({ target: solana.url });
  const some = await startFixture([liar.url, solana.url]);
  const { named, other, memo, isExpired } = await makeTwoPayments(some);
  const cursor = () => some.db.selectFrom("account_cursor").selectAll().executeTakeFirstOrThrow();
  const slot = Number((await cursor()).listed_slot) + 1;
  const invent = (at: number) => ({
    signature: encodeBase58(randomBytes(64)),
    slot: at,
    err: null,
    memo: `[66] ${memo}`,
  });
  // No endpoint of a real cluster may go back to the second slot.
  const invented = [invent(slot), invent(1)];
  liar.alter((method, _params, result) =>
    method === "getSignaturesForAddress" ? [...invented, ...(result as object[])] : result,
  );
  await some.readHistory();
  liar.alter(undefined);
  const listed = (await entries(some)).map((one) => [Number(one.slot), one.urgent, one.nonces.length]);
  expect(listed.toSorted()).toEqual([
    [1, false, 0],
    [slot, true, 1],
  ]);
  await some.db.deleteFrom("history_entry").where("slot", "=", 1).execute();
  await readEightTimes(some);
  expect(await entries(some)).toMatchObject([{ urgent: false, nonces: [] }]);
  expect(some.lines.join("")).toContain("has listed a transaction that does not exist");
  await waitFor(() => isExpired(other), { within: 90_000 });
  expect(await isExpired(named)).toBe(true);
});

test("an attempt to read a transaction does not count while no endpoint answers any call", async () => {
  const away = await startAlteringProxy({ target: solana.url });
  const some = await startFixture([away.url, away.url]);
  await waitFinalized(solana, ...(await sendDust(solana, treasuryOf(some), 1)));
  const silence = new RpcRefusal({ code: 0, message: "" }, 503);
  away.alter((method, _params, result) => (method === "getTransaction" ? silence : result));
  await expect(some.readHistory()).rejects.toMatchObject({ code: "rpc_unreachable" });
  expect(await entries(some)).toMatchObject([{ attempts_made: 1 }]);
  away.alter(() => silence);
  some.clock.advance(5_000);
  const [before] = await entries(some);
  await expect(some.readHistory()).rejects.toMatchObject({ code: "rpc_unreachable" });
  const [after] = await entries(some);
  expect(after?.attempts_made).toBe(1);
  expect(after?.due_at.getTime()).toBeGreaterThan(before?.due_at.getTime() ?? 0);
  away.alter(undefined);
  await some.watchUntil(async () => (await observations(some)).length === 1);
});

test("a payment does not wait for ever for a transaction without a movement that one endpoint has invented, and shows no more", async () => {
  const liar = await startAlteringProxy({ target: solana.url });
  const some = await startFixture([liar.url, solana.url]);
  const { memo } = await makeTwoPayments(some);
  const [sent = ""] = await sendDust(solana, treasuryOf(some), 1);
  await waitFinalized(solana, sent);
  await some.readHistory();
  const like = (await postJson(
    solana.url,
    JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "getTransaction",
      params: [sent, { commitment: "finalized", maxSupportedTransactionVersion: 0 }],
    }),
  )) as string;
  const { result } = JSON.parse(like) as { result: { meta: object } };
  const err = { InstructionError: [0, { Custom: 1 }] };
  const { listed_slot: listed } = await some.db.selectFrom("account_cursor").selectAll().executeTakeFirstOrThrow();
  const invented = {
    signature: encodeBase58(randomBytes(64)),
    slot: Number(listed) + 1,
    err: null,
    memo: `[66] ${memo}`,
  };
  liar.alter((method, [signature], answer) => {
    if (method === "getSignaturesForAddress") return [invented, ...(answer as object[])];
    const isAsked = method === "getTransaction" && signature === invented.signature;
    return isAsked ? { ...result, slot: invented.slot, meta: { ...result.meta, err, status: { Err: err } } } : answer;
  });
  await some.readHistory();
  liar.alter(undefined);
  expect(await entries(some)).toMatchObject([
    { signature: invented.signature, urgent: true, reading: { digest: null } },
  ]);
  await readEightTimes(some);
  for (let read = 0; read < 3; read += 1) {
    some.clock.advance(60_000);
    await some.readHistory();
  }
  expect(await entries(some)).toMatchObject([{ urgent: false, nonces: [] }]);
});
