import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { createMetrics } from "../../../runtime/metrics.ts";
import { recordApprovalKeys, revokeApprovalKey } from "../../../signer/approval-keys.ts";
import { ownActor } from "../../../signer/audit/entries.ts";
import { createStore } from "../../../signer/create-store.ts";
import { recordDestination } from "../../../signer/destinations.ts";
import { inStoreTransaction } from "../../../signer/store.ts";
import { setWaitingGauges } from "../../../signer/waiting-gauges.ts";

const asset = `eip155:31337/erc20:0x${"a1".repeat(20)}`;
const period = { at: new Date("2026-03-01T00:00:00Z"), waitingHours: 72, isHeld: false, actor: ownActor };

test("each claim that waits has a series of its own until it ends, so that it raises an alert of its own", async () => {
  const store = createStore(":memory:", { command: "init", at: period.at });
  const metrics = createMetrics(new Registry(), "signer");
  const read = async () => {
    setWaitingGauges({ store, metrics });
    const gauges = [metrics.signerDestinationsWaiting, metrics.signerApprovalKeysWaiting];
    const samples = await Promise.all(gauges.map((gauge) => gauge.get()));
    return samples.map(({ values }) => values.map(({ labels, value }) => `${labels.claim}: ${value}`));
  };
  expect(await read()).toEqual([[], []]);
  const claim = (merchantId: string, byte: string) =>
    inStoreTransaction(store, () =>
      recordDestination(store, { merchantId, asset, receiver: `0x${byte.repeat(20)}` }, period),
    );
  // The first destination of a new merchant does not wait.
  for (const byte of ["d1", "d2"]) claim("mrch_1", byte);
  for (const byte of ["d1", "d2"]) claim("mrch_2", byte);
  const [first, second] = ["e1", "e2"].map((byte) => ({ merchantId: "mrch_1", publicKey: byte.repeat(32) }));
  if (!first || !second) throw new Error("there are no keys");
  inStoreTransaction(store, () => recordApprovalKeys(store, [first, second], period));
  expect(await read()).toEqual([
    ["2: 1", "4: 1"],
    ["1: 1", "2: 1"],
  ]);
  inStoreTransaction(store, () => revokeApprovalKey(store, first, { ...period, text: null }));
  expect((await read())[1]).toEqual(["2: 1"]);
});
