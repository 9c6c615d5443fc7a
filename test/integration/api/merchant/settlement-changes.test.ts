import { expect, test } from "vitest";
import { setDestinationWait } from "../../../../payments/maintenance/operator-actions.ts";
import { makeApprovalKey, signStatement } from "../../../support/approval-key.ts";
import { testActor } from "../../../support/test-actor.ts";
import { asset, destination, makeKey, makeMerchant, networksDocument, startApi } from "../start-api.ts";

const api = await startApi();
const elsewhere = `eip155:31337:0x${"d2".repeat(20)}`;

/** A merchant whose changes wait, a key that may approve them, and a change that its other key has requested. */
async function setUp(mode: "test" | "live" = "test") {
  const merchant = await makeMerchant(api, { mode, scopes: ["gateway", "merchants", "settlements"] });
  const { accountId, merchantId } = merchant;
  const path = `/v1/merchants/${merchantId}/settlements`;
  const keysPath = `/v1/merchants/${merchantId}/approval-keys`;
  const requester = await makeKey(api, { accountId, mode, scopes: ["settlements"] });
  const approver = await makeKey(api, { accountId, mode, scopes: ["settlements:approve"] });
  const signing = makeApprovalKey();
  const register = (publicKey: string) => api.post(keysPath, { "api-key": approver.key }, { publicKey });
  await register(signing.publicKey);
  const waitFor = (hours: number) => setDestinationWait(api.deps, { actor: testActor, accountId, hours });
  await waitFor(72);
  const list = async () => (await api.get(path, merchant.headers)).body["crypto"] as [Record<string, unknown>];
  const [{ id }] = await list();
  const change = (key: string) => api.put(`${path}/crypto/${id}`, { "api-key": key }, { destination: elsewhere });
  const requested = await change(requester.key);
  const { changeId } = requested.body["pendingChange"] as { changeId: string };
  const subjectOf = (decision: "approve" | "reject") =>
    ({
      action: `${decision} destination`,
      merchantId,
      asset,
      receiver: elsewhere.slice("eip155:31337:".length),
    }) as const;
  const signed = (decision: "approve" | "reject", key = signing) => signStatement(key, subjectOf(decision));
  const decide = (key: string, decision: "approve" | "reject", statement: object | null = signed(decision)) =>
    api.post(`${path}/changes/${changeId}/${decision}`, { "api-key": key }, { statement });
  const revoke = (publicKey: string) => api.post(`${keysPath}/${publicKey}/revoke`, { "api-key": approver.key }, {});
  const statements = () =>
    api.db
      .selectFrom("signed_statement")
      .select(["text", "signer", "signature"])
      .where("subject", "=", changeId)
      .execute();
  const made = { merchant, path, keysPath, list, requester, approver, change, requested, changeId, decide };
  return { ...made, signing, signed, subjectOf, register, revoke, statements, waitFor };
}

test("a changed destination stays as it is, and the responses show the change that waits", async () => {
  const { merchant, path, list, requested, changeId } = await setUp();
  expect(requested).toMatchObject({ status: 200, body: { destination, pendingChange: { destination: elsewhere } } });
  expect(await list()).toEqual([requested.body]);
  const { merchant: shown } = (await api.get(`/v1/merchants/${merchant.merchantId}`, merchant.headers)).body as {
    merchant: { settlements: object };
  };
  expect(shown.settlements).toEqual({ crypto: [requested.body], fiat: [] });
  const listed = await api.get(`${path}/changes?status=requested`, merchant.headers);
  expect(listed.body["data"]).toMatchObject([
    {
      changeId,
      previousDestination: destination,
      destination: elsewhere,
      status: "requested",
      requestedBy: { type: "key", id: expect.stringMatching(/^key_/), address: "127.0.0.1" },
      decidedBy: null,
    },
  ]);
});

test("an approval applies at once with the scope and the signature of an approval key, which is stored for the signer", async () => {
  const { list, requester, approver, changeId, decide, signed, statements } = await setUp("live");
  for (const decision of ["approve", "reject"] as const)
    expect(await decide(requester.key, decision)).toMatchObject({ status: 403, body: { code: "forbidden" } });
  const approval = signed("approve");
  expect(await decide(approver.key, "approve", approval)).toMatchObject({
    status: 200,
    body: { changeId, status: "applied", decidedBy: { type: "key", id: approver.id } },
  });
  expect(await decide(approver.key, "approve", approval)).toMatchObject({ status: 200 });
  expect(await statements()).toEqual([approval]);
  expect(await list()).toMatchObject([{ destination: elsewhere }]);
  expect(await decide(approver.key, "reject")).toMatchObject({ status: 400, body: { code: "invalid_state" } });
});

type Made = Awaited<ReturnType<typeof setUp>>;
test.each([
  ["without a signature", () => null, "params_validation"],
  ["by a key that is not registered", ({ signed }: Made) => signed("approve", makeApprovalKey()), "forbidden"],
  [
    "whose signature another key made",
    ({ signed }: Made) => ({ ...signed("approve"), signature: signed("approve", makeApprovalKey()).signature }),
    "params_validation",
  ],
  [
    "of another receiver",
    ({ signing, subjectOf }: Made) =>
      signStatement(signing, { ...subjectOf("approve"), receiver: `0x${"d3".repeat(20)}` }),
    "params_validation",
  ],
  [
    "of another merchant",
    ({ signing, subjectOf }: Made) => signStatement(signing, { ...subjectOf("approve"), merchantId: "mrch_2" }),
    "params_validation",
  ],
  [
    "for another deployment",
    ({ signing, subjectOf }: Made) => signStatement(signing, subjectOf("approve"), { deployment: "other" }),
    "params_validation",
  ],
  [
    "that is older than a day",
    ({ signing, subjectOf }: Made) =>
      signStatement(signing, subjectOf("approve"), { at: new Date(Date.now() - 25 * 3_600_000) }),
    "params_validation",
  ],
  ["whose statement rejects", ({ signed }: Made) => signed("reject"), "params_validation"],
])("a stolen API key approves nothing: an approval %s is refused", async (_what, make, code) => {
  const made = await setUp("live");
  // An error of the statement begins with the member's path in the body.
  const message =
    code === "params_validation" ? expect.stringMatching(/^statement(\.text|\.signature)?: /) : expect.any(String);
  const body = { code, message };
  expect(await made.decide(made.approver.key, "approve", make(made))).toMatchObject({ body });
  expect(await made.list()).toMatchObject([{ destination, pendingChange: { destination: elsewhere } }]);
  expect(await made.statements()).toEqual([]);
});

test("a key that a thief registers counts after the waiting period only, and no second registration shortens it", async () => {
  const { approver, decide, signed, register, keysPath, merchant } = await setUp("live");
  const thief = makeApprovalKey();
  const answers = [await register(thief.publicKey), await register(thief.publicKey)];
  expect(answers).toMatchObject([
    {
      status: 201,
      body: { approvalKey: { publicKey: thief.publicKey, status: "waiting", deployment: networksDocument.deployment } },
    },
    { status: 201 },
  ]);
  expect(answers[1]?.body).toEqual(answers[0]?.body);
  expect(await decide(approver.key, "approve", signed("approve", thief))).toMatchObject({ status: 403 });
  expect((await api.get(keysPath, merchant.headers)).body["data"]).toMatchObject([
    { publicKey: thief.publicKey, status: "waiting", registeredBy: { type: "key", id: approver.id } },
    { status: "active" },
  ]);
});

test("a revoked key approves nothing, still rejects, and cannot be registered again", async () => {
  const { approver, decide, signing, revoke, register, statements } = await setUp("live");
  expect(await revoke(signing.publicKey)).toMatchObject({ body: { approvalKey: { status: "revoked" } } });
  expect(await revoke(signing.publicKey)).toMatchObject({ status: 200 });
  expect(await decide(approver.key, "approve")).toMatchObject({ status: 403, body: { code: "forbidden" } });
  expect(await register(signing.publicKey)).toMatchObject({ status: 400, body: { code: "invalid_state" } });
  expect(await decide(approver.key, "reject")).toMatchObject({ status: 200, body: { status: "rejected" } });
  expect(await statements()).toHaveLength(1);
  expect(await revoke(makeApprovalKey().publicKey)).toMatchObject({ status: 404, body: { code: "api_key_not_found" } });
});

test("an approval that was used decides about no later change to the same account", async () => {
  const { approver, requester, decide, signed, path, list, change, waitFor } = await setUp("live");
  const approval = signed("approve");
  await decide(approver.key, "approve", approval);
  const [{ id }] = await list();
  await waitFor(0);
  await api.put(`${path}/crypto/${id}`, { "api-key": requester.key }, { destination });
  await waitFor(72);
  // The merchant has left the account. A thief asks for it again.
  const { changeId } = (await change(requester.key)).body["pendingChange"] as { changeId: string };
  const copied = await api.post(
    `${path}/changes/${changeId}/approve`,
    { "api-key": approver.key },
    { statement: approval },
  );
  expect(copied).toMatchObject({ status: 400, body: { code: "invalid_state" } });
  expect(await list()).toMatchObject([{ destination }]);
});

test("a key with the scope rejects a change, and the destination stays", async () => {
  const { list, approver, decide, statements } = await setUp("live");
  expect(await decide(approver.key, "reject", null)).toMatchObject({
    status: 200,
    body: { status: "rejected", rejectionReason: "decided" },
  });
  expect(await statements()).toEqual([]);
  expect((await list())[0]).toEqual({ id: expect.any(String), asset: expect.any(String), destination });
  expect(await decide(approver.key, "approve")).toMatchObject({ status: 400, body: { code: "invalid_state" } });
});

test("a key of another account finds no change, and the list has pages", async () => {
  const { merchant, path, changeId } = await setUp();
  const other = await setUp();
  const foreign = await api.post(
    `${path}/changes/${changeId}/approve`,
    { "api-key": other.approver.key },
    { statement: other.signed("approve") },
  );
  expect(foreign).toMatchObject({ status: 404, body: { code: "merchant_not_found" } });
  const [newest, oldest] = await (async () => {
    const first = await api.get(`${path}/changes?limit=1`, merchant.headers);
    const second = await api.get(`${path}/changes?limit=1&cursor=${first.body["nextCursor"]}`, merchant.headers);
    expect(second.body["nextCursor"]).toBeNull();
    return [first.body["data"], second.body["data"]];
  })();
  expect(newest).toMatchObject([{ changeId, status: "requested" }]);
  expect(oldest).toMatchObject([{ previousDestination: null, status: "applied" }]);
});
