import { PublicKey } from "@solana/web3.js";
import { expect, test } from "vitest";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { isCaughtUp } from "../../../support/is-caught-up.ts";
import { readSystemStatus } from "../../../support/read-system-status.ts";
import { makeListedFixture, payUnsolicited, waitFinalized } from "../../../support/solana-history.ts";
import type { SolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, sendDust, startTestSolana } from "../../../support/test-solana.ts";
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
