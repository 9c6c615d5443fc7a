import { setTimeout as pause } from "node:timers/promises";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { expirePayment } from "../../../../payments/lifecycle/expire-payment.ts";
import { createVerify } from "../../../../payments/lifecycle/verify-batches.ts";
import { createVerifier } from "../../../../transfers/verifier.ts";
import { inRealTime } from "../../../support/in-real-time.ts";
import { waitFor } from "../../../support/wait-for.ts";
import {
  type Api,
  countHeld,
  makeMerchant,
  makePayment,
  movePayment,
  startApi,
  type TestMerchant,
} from "../start-api.ts";

type Option = { id: string; actions: { data: { params: [string, string] } }[] };
type Confirm = { optionId: string; results: { type: string; data: string[] }[] };

let api: Api;
let shop: TestMerchant;
let id: string;
let confirm: Confirm;
const buyer = privateKeyToAccount(`0x${"07".repeat(32)}`);
const other = privateKeyToAccount(`0x${"08".repeat(32)}`);

beforeAll(async () => {
  api = await startApi();
  shop = await makeMerchant(api);
});
beforeEach(async () => {
  id = await makePayment(api, shop);
  confirm = await sign(buyer);
});

/** Returns what a wallet sends after it has signed the buyer's option with this account's key. */
async function sign(signer: PrivateKeyAccount): Promise<Confirm> {
  const accounts = [`eip155:31337:${buyer.address}`];
  const { body } = await api.post(`/v1/gateway/payment/${id}/options`, shop.wallet, { accounts });
  const [option] = body["options"] as Option[];
  const typedData = JSON.parse(option?.actions[0]?.data.params[1] ?? "");
  const signature = await signer.signTypedData(typedData);
  return { optionId: option?.id ?? "", results: [{ type: "walletRpc", data: [signature] }] };
}

const send = (body: object, query = "") => api.post(`/v1/gateway/payment/${id}/confirm${query}`, shop.wallet, body);
const listAttempts = () => api.db.selectFrom("attempt").selectAll().where("payment_id", "=", id).execute();

function verifyAttempt(id: string): Promise<unknown> {
  const forJobs = { isTransient: () => false, withoutRequestContext: <T>(work: () => T) => work() };
  return createVerify({ ...api.deps, ...forJobs, verifier: createVerifier(api.deps) })(id);
}

/** Waits until the service holds this many requests. */
const waitHeld = (count: number) => waitFor(async () => (await countHeld(api)) === count, { within: 20_000 });

/** Verifies the attempt as soon as it is stored, as a worker does. */
async function verify(): Promise<void> {
  const attempt = await waitFor(async () => (await listAttempts()).find((one) => one.state === "waiting"), {
    within: 20_000,
  });
  await verifyAttempt(attempt.id);
}

const paid = () => ({
  status: 200,
  body: { status: "succeeded", isFinal: true, pollInMs: null, info: { txId: `test:${id}` } },
});

describe("a confirm", () => {
  test("a confirm waits for verification and returns the payment's new status", inRealTime, async () => {
    const [answer] = await Promise.all([send(confirm), verify()]);
    expect(answer).toMatchObject(paid());
  });

  test("a confirm with another account's signature gets 400 with the reason, and the payment still waits", async () => {
    const [answer] = await Promise.all([send(await sign(other), "?maxPollMs=20000"), verify()]);
    expect(answer).toMatchObject({
      status: 400,
      body: { code: "invalid_params", message: expect.stringMatching(/not the account's/) },
    });
    const { body } = await api.get(`/v1/gateway/payment/${id}/status`, shop.wallet);
    expect(body).toMatchObject({ status: "requires_action", isFinal: false });
    const [answered] = await Promise.all([send(confirm, "?maxPollMs=20000"), verify()]);
    expect(answered).toMatchObject(paid());
  });

  test("a repeated confirm whose attempt stays refused gets the refusal without waiting", async () => {
    const forged = await sign(other);
    const [first] = await Promise.all([send(forged, "?maxPollMs=20000"), verify()]);
    // No attempt is verified again after the deadline, and nothing here ends the payment.
    await api.db
      .updateTable("payment")
      .set({ expires_at: new Date(Date.now() - 1_000) })
      .where("id", "=", id)
      .execute();
    const headers = { ...shop.wallet, "x-request-id": `repeated-${id}` };
    const repeated = await api.post(`/v1/gateway/payment/${id}/confirm?maxPollMs=25000`, headers, forged);
    expect(repeated).toMatchObject({ status: 400, body: first.body });
    const isOwn = (line: string) => line.includes(`repeated-${id}`) && line.includes("heldMs");
    const line = await waitFor(() => api.lines.find(isOwn), { within: 20_000 });
    expect(JSON.parse(line)).toMatchObject({ heldMs: 0 });
  });

  test("a confirm without a verification result returns the current status after two seconds", async () => {
    const began = performance.now();
    expect(await send(confirm)).toMatchObject({ status: 200, body: { status: "requires_action", pollInMs: 1000 } });
    expect(performance.now() - began).toBeGreaterThan(1_900);
    expect(performance.now() - began, "the longest wait is 25 s").toBeLessThan(15_000);
  });

  test("a confirm with maxPollMs=0 does not wait", inRealTime, async () => {
    const began = performance.now();
    expect(await send(confirm, "?maxPollMs=0")).toMatchObject({ status: 200, body: { status: "requires_action" } });
    expect(performance.now() - began, "the usual wait is 2 s").toBeLessThan(1_900);
  });

  test("a confirm with maxPollMs waits longer than two seconds for its verification", async () => {
    const asked = send(confirm, "?maxPollMs=60000");
    const began = performance.now();
    await waitFor(() => performance.now() - began > 2_500, { within: 20_000 });
    const [answer] = await Promise.all([asked, verify()]);
    expect(answer).toMatchObject(paid());
  });

  test("a confirm that is sent 16 times at once makes one attempt and gets 16 equal responses", async () => {
    const asked = Array.from({ length: 16 }, () => send(confirm, "?maxPollMs=20000"));
    await verify();
    const answers = await Promise.all(asked);
    expect(answers[0]).toMatchObject(paid());
    for (const answer of answers) expect([answer.status, answer.body]).toEqual([200, answers[0]?.body]);
    expect(await listAttempts()).toHaveLength(1);
  });

  test("a confirm that is repeated before its verification gets 200 and makes no second attempt", async () => {
    for (let time = 0; time < 3; time += 1)
      expect(await send(confirm, "?maxPollMs=0")).toMatchObject({ status: 200, body: { status: "requires_action" } });
    expect(await listAttempts()).toHaveLength(1);
  });

  test.each(["processing", "succeeded", "failed", "expired", "cancelled"] as const)(
    "a confirm that is repeated when its payment is %s gets 200 with that status",
    async (state) => {
      await send(confirm, "?maxPollMs=0");
      if (state === "cancelled") await movePayment(api, id, "requires_action", state);
      else await movePayment(api, id, "requires_action", "processing");
      if (state !== "processing" && state !== "cancelled") await movePayment(api, id, "processing", state);
      expect(await send(confirm)).toMatchObject({ status: 200, body: { status: state } });
      expect(await listAttempts()).toHaveLength(1);
    },
  );

  test(
    "a confirm with maxPollMs is held until its payment is final, and one without it until verification",
    inRealTime,
    async () => {
      // A failed try leaves requests that are still held.
      await waitHeld(0);
      const held = send(confirm, "?maxPollMs=20000");
      await waitFor(async () => (await listAttempts()).length === 1, { within: 20_000 });
      const others = [send(confirm), api.get(`/v1/gateway/payment/${id}/status?maxPollMs=20000`, shop.wallet)];
      await waitHeld(3);
      await movePayment(api, id, "requires_action", "processing");
      await api.publishPaymentChanges([id]);
      const processing = { status: 200, body: { status: "processing", isFinal: false, pollInMs: 1000 } };
      for (const answer of await Promise.all(others)) expect(answer).toMatchObject(processing);
      await movePayment(api, id, "processing", "succeeded");
      await api.publishPaymentChanges([id]);
      expect(await held).toMatchObject(paid());
    },
  );

  test(
    "a confirm with maxPollMs returns the current status when its payment is not final in time",
    inRealTime,
    async () => {
      const asked = send(confirm, "?maxPollMs=3000");
      await waitFor(async () => (await listAttempts()).length === 1, { within: 20_000 });
      await movePayment(api, id, "requires_action", "processing");
      await api.publishPaymentChanges([id]);
      expect(await asked).toMatchObject({
        status: 200,
        body: { status: "processing", isFinal: false, pollInMs: 1000 },
      });
    },
  );

  test("a repeated confirm with maxPollMs is held until the processing payment is final", async () => {
    await waitHeld(0);
    await send(confirm, "?maxPollMs=0");
    await movePayment(api, id, "requires_action", "processing");
    const asked = send(confirm, "?maxPollMs=20000");
    await waitHeld(1);
    await movePayment(api, id, "processing", "succeeded");
    await api.publishPaymentChanges([id]);
    expect(await asked).toMatchObject(paid());
  });

  test("a confirm with another authorization while the first one is processing is refused and changes nothing", async () => {
    const second = await sign(other);
    await send(confirm, "?maxPollMs=0");
    await movePayment(api, id, "requires_action", "processing");
    expect(await send(second)).toMatchObject({ status: 400, body: { code: "invalid_state" } });
    expect(await listAttempts()).toHaveLength(1);
    expect(await send(confirm)).toMatchObject({ status: 200, body: { status: "processing" } });
  });

  test("a new confirm of an expired payment is refused", async () => {
    await movePayment(api, id, "requires_action", "expired");
    expect(await send(confirm)).toMatchObject({ status: 410, body: { code: "payment_expired" } });
  });

  test.each([
    ["no result", []],
    ["two results for one action", ["twice"]],
  ])("a confirm with %s is refused", async (_name, more) => {
    const results = more.length === 0 ? [] : [...confirm.results, ...confirm.results];
    expect(await send({ ...confirm, results })).toMatchObject({
      status: 400,
      body: { message: expect.stringMatching(/^results: /) },
    });
    expect(await listAttempts()).toEqual([]);
  });

  test.each([
    ["an object, as for Tron", [{ raw_data_hex: "00", signature: ["00"] }]],
    ["a list", [["0x00"]]],
    ["null", [null]],
    ["no hex", ["signed"]],
    ["a hash", [`0x${"00".repeat(32)}`]],
  ])("a confirm is refused when the signature is %s, with the member's name", async (_name, data) => {
    expect(await send({ ...confirm, results: [{ type: "walletRpc", data }] })).toMatchObject({
      status: 400,
      body: { code: "invalid_params", message: expect.stringMatching(/^results\.0\.data\.0: /) },
    });
    expect(await listAttempts()).toEqual([]);
  });

  test.each([null, true, "0x00", ["0x00"], { a: 1 }])(
    "a confirm ignores unrequested collected data and an excludeFromRelayer of %j",
    async (excludeFromRelayer) => {
      const collectedData = { fields: [{ id: "fullName", value: "Ada", since: 1 }], more: true };
      const body = { ...confirm, collectedData, excludeFromRelayer };
      const [answer] = await Promise.all([send(body, "?maxPollMs=20000"), verify()]);
      expect(answer).toMatchObject(paid());
    },
  );

  test("exactly one of a racing confirm, cancel and deadline wins, and all responses agree", async () => {
    const winners = new Set<string>();
    for (let round = 0; round < 30; round += 1) {
      const began = performance.now();
      id = await makePayment(api, shop);
      confirm = await sign(buyer);
      await send(confirm, "?maxPollMs=0");
      const [attempt] = await listAttempts();
      const expires_at = new Date(Date.now() + (round % 3) * 4);
      await api.db.updateTable("payment").set({ expires_at }).where("id", "=", id).execute();
      // A cancel is quicker than a verification, so it begins later in most rounds: up to the time of the requests before.
      const lateMs = ((performance.now() - began) * (round % 6)) / 5;
      const [answer, cancelled] = await Promise.all([
        send(confirm, "?maxPollMs=20000"),
        pause(lateMs).then(() => api.post(`/v1/payments/${id}/cancel`, shop.headers, {})),
        verifyAttempt(attempt?.id ?? ""),
        expirePayment(api.deps, id),
      ]);
      const events = await api.db.selectFrom("event").selectAll().where("subject", "=", id).execute();
      const decided = events.filter((event) => event.from_state === "requires_action").map((event) => event.to_state);
      const { status } = (await api.get(`/v1/gateway/payment/${id}/status`, shop.wallet)).body;
      expect(decided).toEqual([status === "succeeded" ? "processing" : status]);
      expect(cancelled.status).toBe(status === "cancelled" ? 200 : 400);
      // A confirm that lost returns the payment's status, or the reason of its refusal.
      if (answer.status === 200) expect(answer.body).toMatchObject({ status, isFinal: true });
      else {
        expect(answer).toMatchObject({ status: 400, body: { code: "invalid_params" } });
        expect(status).not.toBe("succeeded");
      }
      winners.add(String(status));
    }
    expect(winners.size).toBeGreaterThan(1);
  });
});
