import { describe, expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { applyDueChanges, decideChange } from "../../../../payments/merchants/decide-changes.ts";
import {
  addDestinations,
  changeDestination,
  deleteDestination,
  listDestinations,
} from "../../../../payments/merchants/destinations.ts";
import { setDirectPayment } from "../../../../payments/payouts/payout-policies.ts";
import { roleUrl } from "../../../support/database-roles.ts";
import { fundBuyer, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { execute } from "../../../support/execute-sql.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { createDatabase } from "../../../support/test-database.ts";
import { deliverAll, registerEndpoint, startWebhookEndpoint } from "../../../support/webhook-endpoint.ts";

const chain = await startChain();
const databaseUrl = await createDatabase();
const HOUR = 3_600_000;
const thief = { kind: "key", id: "key_stolen", address: "203.0.113.9" } as const;

/** A merchant that has been paid once, and what a test does with its destination. */
async function setUp() {
  const fixture = await makeMerchantFixture(chain, { databaseUrl, destinationWaitingHours: 72 });
  const { deps, accountId, merchantId, mode } = fixture;
  const owner = { accountId, merchantId, mode };
  await payOut(fixture, await fixture.pay(await fundBuyer(chain)));
  const show = async () => {
    const [one] = unwrap(await listDestinations(deps, owner));
    if (!one) throw new Error("the merchant has no destination");
    return one;
  };
  const { id } = await show();
  const change = async (address: string, actor: typeof thief | typeof testActor = thief) =>
    unwrap(await changeDestination(deps, { ...owner, id, actor, destination: `${chain.id}:${address}` }));
  const decide = (changeId: string, decision: "approve" | "reject") =>
    decideChange(deps, { ...owner, changeId, actor: testActor, decision });
  return { fixture, deps, owner, id, show, change, decide };
}

async function payOut(fixture: MerchantFixture, paymentId: string) {
  const [outcome] = await fixture.settle((await fixture.settlementOf(paymentId)).id);
  await fixture.relay();
  await fixture.watch();
  return outcome;
}

const balanceOf = (address: string) => usdcBalance(chain, address as `0x${string}`);

describe("a changed destination", () => {
  test("payouts go to the old account within the waiting period, and to the new one after it", async () => {
    const { fixture, deps, change, show } = await setUp();
    const { address } = newKey();
    const changed = await change(address);
    expect(changed).toMatchObject({
      destination: `${chain.id}:${fixture.destination}`,
      pendingChange: { destination: `${chain.id}:${address}` },
    });
    const wait = (changed.pendingChange?.appliesAt.getTime() ?? 0) - deps.now().getTime();
    expect(wait).toBeGreaterThan(71 * HOUR);
    await applyDueChanges(deps);
    await payOut(fixture, await fixture.pay(await fundBuyer(chain)));
    expect([await balanceOf(address), await balanceOf(fixture.destination)]).toEqual([0n, 2_000_000n]);

    fixture.clock.advance(wait);
    await Promise.all([applyDueChanges(deps), applyDueChanges(deps)]);
    expect(await show()).toEqual(expect.objectContaining({ destination: `${chain.id}:${address}` }));
    expect(await show()).not.toHaveProperty("pendingChange");
    await payOut(fixture, await fixture.pay(await fundBuyer(chain)));
    expect([await balanceOf(address), await balanceOf(fixture.destination)]).toEqual([1_000_000n, 2_000_000n]);
  });

  test("a stolen key that changes the destination leaves events, audit entries and a log line that name it", async () => {
    const { fixture, change, decide } = await setUp();
    const endpoint = await startWebhookEndpoint();
    await registerEndpoint(fixture, endpoint.url);
    const { address } = newKey();
    const { pendingChange } = await change(address);
    unwrap(await decide(pendingChange?.changeId ?? "", "reject"));
    await deliverAll(fixture);
    // They are sent at the same time, and may arrive in any order.
    const notices = endpoint.arrivals
      .filter(({ event }) => event.type.startsWith("destination."))
      .toSorted((one, other) => one.event.type.localeCompare(other.event.type));
    expect(notices.map(({ event }) => event.type)).toEqual(["destination.change_requested", "destination.rejected"]);
    const [requested, rejected] = notices.map(({ event }) => event.data);
    expect(requested).toMatchObject({
      change_id: pendingChange?.changeId,
      merchant_id: fixture.merchantId,
      status: "requested",
      previous_destination: `${chain.id}:${fixture.destination}`,
      destination: `${chain.id}:${address}`,
      requested_by: { type: "key", id: thief.id, address: thief.address },
      approved: null,
      applied: null,
      rejected: null,
    });
    expect(rejected).toMatchObject({ status: "rejected", rejected: { rejected_by: { type: "operator", id: null } } });
    const entries = await fixture.db
      .selectFrom("audit_entry")
      .selectAll()
      .where("actor_id", "in", [thief.id, testActor.id])
      .where("action", "like", "destination.change_%")
      .orderBy("at")
      .orderBy("sequence")
      .execute();
    const own = entries.filter(({ after }) => after?.["change"] === pendingChange?.changeId);
    expect(own).toMatchObject([
      { action: "destination.change_requested", actor_id: thief.id, actor_address: thief.address },
      { action: "destination.change_rejected", actor_id: testActor.id },
    ]);
    expect(fixture.lines.join("")).toContain("destination change requested");
  });

  test("an approval applies the change at once, and reports that it was approved and applied", async () => {
    const { fixture, change, decide, show } = await setUp();
    const endpoint = await startWebhookEndpoint();
    await registerEndpoint(fixture, endpoint.url);
    const { address } = newKey();
    const { pendingChange } = await change(address);
    const changeId = pendingChange?.changeId ?? "";
    unwrap(await decide(changeId, "approve"));
    expect(unwrap(await decide(changeId, "approve"))).toMatchObject({ status: "applied" });
    expect(await decide(changeId, "reject")).toMatchObject({ code: "invalid_state" });
    expect((await show()).destination).toBe(`${chain.id}:${address}`);
    await deliverAll(fixture);
    expect(
      endpoint
        .types()
        .filter((type) => type.startsWith("destination."))
        .toSorted(),
    ).toEqual(["destination.applied", "destination.approved", "destination.change_requested"]);
  });

  test("a rejected change never applies", async () => {
    const { fixture, deps, change, decide, show } = await setUp();
    const { pendingChange } = await change(newKey().address);
    unwrap(await decide(pendingChange?.changeId ?? "", "reject"));
    expect(await decide(pendingChange?.changeId ?? "", "approve")).toMatchObject({ code: "invalid_state" });
    fixture.clock.advance(100 * HOUR);
    await applyDueChanges(deps);
    expect((await show()).destination).toBe(`${chain.id}:${fixture.destination}`);
  });

  test("a change back to the current account withdraws the change that waits, and a repeated request keeps its time", async () => {
    const { fixture, deps, change, show } = await setUp();
    const { address } = newKey();
    const { pendingChange } = await change(address);
    fixture.clock.advance(HOUR);
    expect((await change(address)).pendingChange).toEqual(pendingChange);
    expect(await change(fixture.destination.toLowerCase())).not.toHaveProperty("pendingChange");
    fixture.clock.advance(100 * HOUR);
    await applyDueChanges(deps);
    expect((await show()).destination).toBe(`${chain.id}:${fixture.destination}`);
  });

  test("another request replaces the change that waits, and waits for the whole period", async () => {
    const { fixture, deps, change, show } = await setUp();
    await change(newKey().address);
    fixture.clock.advance(71 * HOUR);
    const { address } = newKey();
    await change(address);
    fixture.clock.advance(71 * HOUR);
    await applyDueChanges(deps);
    expect((await show()).destination).toBe(`${chain.id}:${fixture.destination}`);
    fixture.clock.advance(HOUR);
    await applyDueChanges(deps);
    expect((await show()).destination).toBe(`${chain.id}:${address}`);
  });

  test("a change that cannot be applied keeps no change of another merchant waiting, and its error is reported", async () => {
    const [broken, other] = [await setUp(), await setUp()];
    const { address } = newKey();
    const { pendingChange } = await broken.change(newKey().address);
    await other.change(address);
    await execute(
      databaseUrl,
      `create function refuse_change() returns trigger language plpgsql as $$ begin raise exception 'a bad row'; end $$`,
      `create trigger refuse_change before update on destination_change for each row
        when (new.id = '${pendingChange?.changeId}') execute function refuse_change()`,
    );
    try {
      other.fixture.clock.advance(73 * HOUR);
      await expect(applyDueChanges(other.deps)).rejects.toThrow("a bad row");
      expect((await other.show()).destination).toBe(`${chain.id}:${address}`);
      const line = other.fixture.lines.find((one) => one.includes("destination change cannot be applied"));
      expect(line).toContain(pendingChange?.changeId);
    } finally {
      await execute(databaseUrl, "drop function refuse_change cascade");
      unwrap(await broken.decide(pendingChange?.changeId ?? "", "reject"));
    }
  });

  test("a destination that is deleted and added again waits for the whole period, and payouts wait with it", async () => {
    const { fixture, deps, owner, id } = await setUp();
    const paymentId = await fixture.pay(await fundBuyer(chain));
    unwrap(await deleteDestination(deps, { ...owner, id, actor: thief }));
    const { address } = newKey();
    const settlements = [{ asset: chain.asset, destination: `${chain.id}:${address}` }];
    const [added] = unwrap(await addDestinations(deps, { ...owner, actor: thief, settlements }));
    expect(added).toMatchObject({
      destination: `${chain.id}:${address}`,
      pendingChange: { destination: `${chain.id}:${address}` },
    });
    expect(await addDestinations(deps, { ...owner, actor: thief, settlements })).toMatchObject({
      code: "settlement_asset_conflict",
    });
    await applyDueChanges(deps);
    expect(await payOut(fixture, paymentId)).toBe("no_destination");
    await expect(fixture.create()).rejects.toThrow("the merchant has no settlement destination");
    fixture.clock.advance(73 * HOUR);
    await applyDueChanges(deps);
    await fixture.watch();
    expect(await payOut(fixture, paymentId)).toBe("begun");
    expect(await balanceOf(address)).toBe(1_000_000n);
  });

  test("buyers who pay the merchant directly pay the account that applies", async () => {
    const { fixture, deps, owner, id, change } = await setUp();
    unwrap(await setDirectPayment(deps, { ...owner, id, actor: testActor, direct: true }));
    const { address } = newKey();
    await change(address);
    await fixture.pay(await fundBuyer(chain));
    expect([await balanceOf(address), await balanceOf(fixture.destination)]).toEqual([0n, 2_000_000n]);
  });

  test("a payout that races the approval of a change is paid once, to the old or to the new account", async () => {
    const { fixture, change, decide } = await setUp();
    const { address } = newKey();
    const paymentIds = [];
    for (let index = 0; index < 3; index += 1) paymentIds.push(await fixture.pay(await fundBuyer(chain)));
    const { pendingChange } = await change(address);
    const ids = await Promise.all(paymentIds.map(async (one) => (await fixture.settlementOf(one)).id));
    await Promise.all([...ids.map((one) => fixture.settle(one)), decide(pendingChange?.changeId ?? "", "approve")]);
    for (const one of ids) await fixture.settle(one);
    await fixture.relay();
    await fixture.watch();
    const [moved, kept] = [await balanceOf(address), (await balanceOf(fixture.destination)) - 1_000_000n];
    expect(moved + kept).toBe(3_000_000n);
    const rows = await fixture.db.selectFrom("settlement").select("destination").where("id", "in", ids).execute();
    const toNew = rows.filter(({ destination }) => destination === `${chain.id}:${address}`).length;
    expect(moved).toBe(BigInt(toNew) * 1_000_000n);
  });
});

test("who has taken over the api redirects no payout without a change that the merchant hears of", async () => {
  const { fixture, id, owner, show } = await setUp();
  const { merchantId: other } = await makeMerchantFixture(chain, { databaseUrl });
  const asApi = await roleUrl(databaseUrl, "api");
  const stranger = `${chain.id}:${newKey().address}`;
  for (const statement of [
    `update settlement_destination set destination = '${stranger}' where id = '${id}'`,
    `delete from settlement_destination where id = '${id}'`,
    `insert into settlement_destination (id, merchant_id, asset, destination, direct, created_at, updated_at)
      values ('crypto_thief', '${owner.merchantId}', 'thief', '${stranger}', true, now(), now())`,
  ])
    await expect(execute(asApi, statement)).rejects.toThrow("permission denied");

  const insert = (changeId: string, merchantId: string) => `insert into destination_change
    (id, merchant_id, destination_id, asset, after, state, requester_kind, requester_id, created_at, applies_at)
    values ('${changeId}', '${merchantId}', '${id}', '${chain.asset}', '${stranger}', 'requested', 'key', 'k', now(), now())`;
  const apply = (changeId: string) =>
    `update destination_change set state = 'applied', applied_at = now() where id = '${changeId}'`;
  // Another merchant's change cannot redirect this one's payouts.
  await expect(execute(asApi, insert("dchg_other", other), apply("dchg_other"))).rejects.toThrow("cannot apply");
  expect(await show()).toMatchObject({ destination: `${chain.id}:${fixture.destination}` });
  await execute(asApi, insert("dchg_own", owner.merchantId), apply("dchg_own"));
  expect(await show()).toMatchObject({ destination: stranger });
  expect(await execute(databaseUrl, "select to_state from event where subject = 'dchg_own'")).toEqual([
    { to_state: "requested" },
  ]);
});

describe("a first destination", () => {
  test("applies at once for a merchant that has not been paid, and waits for one that has", async () => {
    const fixture = await makeMerchantFixture(chain, { databaseUrl, destinationWaitingHours: 72 });
    const { deps, accountId, merchantId, mode } = fixture;
    const add = (token: string) =>
      addDestinations(deps, {
        ...{ accountId, merchantId, mode },
        actor: testActor,
        settlements: [{ asset: `${chain.id}/erc20:${token}`, destination: `${chain.id}:${newKey().address}` }],
      });
    expect(unwrap(await add(newKey().address))[0]).not.toHaveProperty("pendingChange");
    await payOut(fixture, await fixture.pay(await fundBuyer(chain)));
    expect(unwrap(await add(newKey().address))[0]).toHaveProperty("pendingChange");
  });
});
