import { expect, test } from "vitest";
import { deriveApprovalKey } from "../../../../payments/merchants/approval-keys.ts";
import { isSignedBy } from "../../../../signer/statements.ts";
import { destination, makeKey, makeMerchant, startApi } from "../start-api.ts";

const api = await startApi();
const elsewhere = `eip155:31337:0x${"d2".repeat(20)}`;

/** A merchant whose changes wait, a key that may approve them, and a change that its other key has requested. */
async function setUp() {
  const merchant = await makeMerchant(api, { destinationWaitingHours: 72 });
  const { accountId, merchantId } = merchant;
  const path = `/v1/merchants/${merchantId}/settlements`;
  const requester = await makeKey(api, { accountId, mode: "test", scopes: ["settlements"] });
  const approver = await makeKey(api, { accountId, mode: "test", scopes: ["settlements:approve"] });
  const list = async () => (await api.get(path, merchant.headers)).body["crypto"] as [Record<string, unknown>];
  const [{ id }] = await list();
  const change = (key: string) => api.put(`${path}/crypto/${id}`, { "api-key": key }, { destination: elsewhere });
  const requested = await change(requester.key);
  const { changeId } = requested.body["pendingChange"] as { changeId: string };
  const decide = (key: string, decision: string) =>
    api.post(`${path}/changes/${changeId}/${decision}`, { "api-key": key }, {});
  return { merchant, path, list, requester, approver, change, requested, changeId, decide };
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

test("a key without the scope can neither approve nor reject, and a key with it approves at once", async () => {
  const { list, requester, approver, changeId, decide } = await setUp();
  for (const decision of ["approve", "reject"])
    expect(await decide(requester.key, decision)).toMatchObject({ status: 403, body: { code: "forbidden" } });
  expect(await decide(approver.key, "approve")).toMatchObject({
    status: 200,
    body: { changeId, status: "applied", decidedBy: { type: "key", id: approver.id } },
  });
  const stored = await api.db.selectFrom("signed_statement").selectAll().where("subject", "=", changeId).execute();
  const { publicKey } = deriveApprovalKey(approver.key);
  expect(stored).toMatchObject([{ signer: publicKey }]);
  expect(stored.every((statement) => isSignedBy(publicKey, statement))).toBe(true);
  expect(await list()).toMatchObject([{ destination: elsewhere }]);
  expect(await decide(approver.key, "reject")).toMatchObject({ status: 400, body: { code: "invalid_state" } });
});

test("a key with the scope rejects a change, and the destination stays", async () => {
  const { list, approver, decide } = await setUp();
  expect(await decide(approver.key, "reject")).toMatchObject({
    status: 200,
    body: { status: "rejected", rejectionReason: "decided" },
  });
  expect((await list())[0]).toEqual({ id: expect.any(String), asset: expect.any(String), destination });
  expect(await decide(approver.key, "approve")).toMatchObject({ status: 400, body: { code: "invalid_state" } });
});

test("a key of another account finds no change, and the list has pages", async () => {
  const { merchant, path, changeId } = await setUp();
  const other = await setUp();
  const foreign = await api.post(`${path}/changes/${changeId}/approve`, { "api-key": other.approver.key }, {});
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
