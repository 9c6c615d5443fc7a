import { expect, test } from "vitest";
import { registerApprovalKey, revokeApprovalKey } from "../../../../payments/merchants/approval-keys.ts";
import { listDeliveries } from "../../../../payments/webhooks/list-deliveries.ts";
import { makeApprovalKey } from "../../../support/approval-key.ts";
import { roleUrl } from "../../../support/database-roles.ts";
import { startChain } from "../../../support/evm-chain.ts";
import { execute } from "../../../support/execute-sql.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { makeWebhookFixture } from "../../../support/webhook-endpoint.ts";

const chain = await startChain();
const thief = { kind: "key", id: "key_stolen", address: "203.0.113.9" } as const;

test("a merchant receives an event for each approval key that is registered or revoked, which names who did it", async () => {
  const { fixture, endpoint, owner, query, deliver } = await makeWebhookFixture(chain, { destinationWaitingHours: 72 });
  const { deps, merchantId, clock } = fixture;
  const { publicKey } = makeApprovalKey();
  const key = { ...owner, merchantId, publicKey };
  const { appliesAt } = unwrap(await registerApprovalKey(deps, { ...key, actor: thief }));
  unwrap(await registerApprovalKey(deps, { ...key, actor: thief }));
  endpoint.answer(500);
  await deliver();
  unwrap(await revokeApprovalKey(deps, { ...key, actor: testActor }));
  unwrap(await revokeApprovalKey(deps, { ...key, actor: testActor }));
  endpoint.answer(200);
  clock.advance(10_000);
  await deliver();

  expect(endpoint.types().toSorted()).toEqual([
    "approval_key.registered",
    "approval_key.registered",
    "approval_key.revoked",
  ]);
  const [first, repeated] = endpoint.arrivals.filter(({ event }) => event.type === "approval_key.registered");
  const revoked = endpoint.arrivals.find(({ event }) => event.type === "approval_key.revoked");
  expect(repeated?.body, "an event that is sent again has the same bytes").toBe(first?.body);
  const registered = {
    merchant_id: merchantId,
    live: true,
    public_key: publicKey,
    registered_by: { type: "key", id: thief.id, address: thief.address },
    applies_at: appliesAt.toISOString(),
  };
  expect(first?.event.data).toMatchObject({ ...registered, status: "registered", revoked: null });
  const revokedBy = { type: "operator", id: null, address: null };
  expect(revoked?.event.data).toMatchObject({ ...registered, status: "revoked", revoked: { revoked_by: revokedBy } });
  const listed = unwrap(await listDeliveries(deps, { ...query, limit: 10 }));
  expect(listed.items.map(({ approvalKey, state }) => [approvalKey, state])).toEqual([
    [publicKey, "delivered"],
    [publicKey, "delivered"],
  ]);
});

test("an approval key that a thief writes to the database, or revokes there, is reported to the merchant too", async () => {
  const { fixture, endpoint, deliver } = await makeWebhookFixture(chain);
  const { merchantId, databaseUrl, deps } = fixture;
  const { publicKey } = makeApprovalKey();
  const at = deps.now().toISOString();
  const asApi = await roleUrl(databaseUrl, "api");
  await execute(
    asApi,
    `insert into approval_key (merchant_id, public_key, registrar_kind, registrar_id, created_at, applies_at)
      values ('${merchantId}', '${publicKey}', 'operator', 'op_none', '${at}', '${at}')`,
  );
  await deliver();
  await execute(asApi, `update approval_key set revoked_at = '${at}' where public_key = '${publicKey}'`);
  await deliver();
  expect(endpoint.arrivals.map(({ event }) => [event.type, event.data["public_key"]])).toEqual([
    ["approval_key.registered", publicKey],
    ["approval_key.revoked", publicKey],
  ]);
  expect(endpoint.arrivals[1]?.event.data["revoked"]).toMatchObject({ revoked_by: null });
});
