import { describe, expect, test } from "vitest";
import { catalog, isQueueName, jobId, type QueueName, queueNames } from "../../../queues/catalog.ts";

const hex = "0123456789abcdef".repeat(2);
const good: Record<QueueName, object> = {
  "verify-signature": { chain: "eip155:1", attemptIds: [`att_${hex}`] },
  "verify-contract-wallet": { chain: "eip155:1", attemptIds: [`att_${hex}`] },
  "relay-transfers": { chain: "eip155:1", transferId: `trf_${hex}` },
  "relay-contract-wallet": { chain: "eip155:1", transferId: `trf_${hex}` },
  "submit-solana": { chain: "eip155:1", transferId: `trf_${hex}` },
  "watch-chain": { chain: "eip155:8453", block: 7 },
  "read-history": { chain: "solana:1", at: 1 },
  "expire-payment": { paymentId: `pay_${hex}` },
  settle: { settlementIds: [`stl_${hex}`] },
  reconcile: { chain: "eip155:1", at: 1 },
  refund: { refundIds: [`rfnd_${hex}`] },
  "deliver-webhook": { endpointId: `whe_${hex}` },
  "deliver-slow-webhook": { endpointId: `whe_${hex}` },
  "sum-payments": { at: 1_900_000_000 },
  "check-pages": { at: 1_900_000_000 },
  "move-excess": { chain: "eip155:31337", at: 1_900_000_000 },
  "report-destinations": { at: 1_900_000_000 },
  sweep: { at: 1_900_000_000 },
};

describe.each(queueNames)("a %s job", (name) => {
  const id = (data: object, retry = 0) => jobId(name, data as never, retry);

  test("a job has an id that BullMQ accepts: no colon, and not only digits", () => {
    expect(id(good[name])).not.toContain(":");
    expect(id(good[name])).not.toMatch(/^\d+$/);
    expect(id(good[name]).startsWith(`${name}-`)).toBe(true);
  });

  test("a job has the same id when it is enqueued twice and another id when the sweep retries it", () => {
    expect(id(good[name])).toBe(id(structuredClone(good[name])));
    expect(id(good[name], 1)).not.toBe(id(good[name]));
  });

  test("holds only ids: the schema drops any other member, such as one that the next release sends", () => {
    expect(catalog[name].data.parse(good[name])).toEqual(good[name]);
    expect(catalog[name].data.parse({ ...good[name], signature: "0x" })).toEqual(good[name]);
    expect(catalog[name].data.safeParse({}).success).toBe(false);
    expect(catalog[name].data.safeParse(undefined).success).toBe(false);
  });
});

test("jobs for different work, including different retries, have different ids", () => {
  const ids = [
    jobId("watch-chain", { chain: "eip155:1", block: 11 }, 0),
    jobId("watch-chain", { chain: "eip155:1", block: 1 }, 1),
    jobId("watch-chain", { chain: "eip155:11", block: 1 }, 0),
    jobId("watch-chain", { chain: "eip155:1", block: 1 }, 0),
    jobId("settle", { settlementIds: [`stl_${hex}`] }, 0),
    jobId("settle", { settlementIds: [`stl_${hex}`] }, 10),
  ];
  expect(new Set(ids).size).toBe(ids.length);
});

test.each([
  { attemptIds: [`att_${hex}0`] },
  { attemptIds: [`trf_${hex}`] },
  { attemptIds: ["att_"] },
  { attemptIds: [hex] },
  { attemptIds: [`att_${hex}\n`] },
  { attemptIds: [7] },
  { attemptIds: [] },
])("%o is not valid data of a verify-signature job", (data) => {
  expect(catalog["verify-signature"].data.safeParse({ chain: "eip155:1", ...data }).success).toBe(false);
});

test("jobs of simultaneous confirms merge into one job that lists all their request ids", () => {
  const [one, two] = [`att_${hex}`, `att_${"f".repeat(32)}`] as const;
  const chain = "eip155:1";
  const merge = catalog["verify-signature"].merge?.all;
  expect(
    merge?.([
      { chain, attemptIds: [one], requestId: "a" },
      { chain, attemptIds: [two] },
    ]),
  ).toEqual({
    chain,
    attemptIds: [one, two],
    requestIds: ["a"],
  });
});

test("isQueueName accepts every queue's name and rejects properties that every object has", () => {
  expect(queueNames.every(isQueueName)).toBe(true);
  for (const name of ["", "settles", "toString", "__proto__"]) expect(isQueueName(name)).toBe(false);
});
