import type { ServerResponse } from "node:http";
import { describe, expect, test, vi } from "vitest";
import {
  ConfirmError,
  GatewayClient,
  PaymentDeclinedError,
  type PaymentOption,
  type PayOptions,
  UnsafeActionError,
  WaitTimeoutError,
  type WalletSigner,
} from "../../../client/index.ts";
import { json, reset, startScriptedService } from "./scripted-service.ts";

const { requests, script, baseUrl } = await startScriptedService();
const gateway = new GatewayClient({ baseUrl, appId: "app", maxRetries: 0 });

const chain = "eip155:8453";
const account = `${chain}:0x${"a1".repeat(20)}`;
const option = {
  id: "opt",
  optionId: "opt",
  account,
  amount: {
    unit: `caip19/${chain}/erc20:0x${"b2".repeat(20)}`,
    value: "1",
    display: { assetSymbol: "", assetName: "", decimals: 6 },
  },
  etaS: 1,
  expiresAt: null,
  actions: [{ type: "walletRpc", data: { chain_id: chain, method: "eth_sendTransaction", params: [] } }],
  collectData: null,
};
const info = { paymentId: "pay_1", amount: { value: "1250" }, merchant: { name: "Corner shop" } };
const offer = json(200, { options: [option], info });
const succeeded = json(200, { status: "succeeded", isFinal: true });
const processing = json(200, { status: "processing", isFinal: false, pollInMs: 60_000 });
/** What the wallet in these tests has sent. */
const request = { optionId: "opt", results: [{ type: "walletRpc", data: ["0x01"] }] };

/** A wallet that has sent its transaction as soon as it is asked; `onPrompt` runs while its user decides. */
const openWallet = (onPrompt = () => {}): WalletSigner => ({
  listAccounts: async () => [account],
  owns: () => true,
  canExecute: () => true,
  async execute() {
    onPrompt();
    return ["0x01"];
  },
});

const agrees = { choose: ([one]: readonly PaymentOption[]) => one };
const pay = (options: Partial<PayOptions>, wallet = openWallet()) =>
  gateway.pay("pay_1", wallet, { ...agrees, ...options });
/** Pays, and returns the error. */
const fail = (...args: Parameters<typeof pay>) =>
  pay(...args).then(
    () => undefined,
    (error: unknown) => error,
  );
const confirms = () => requests.filter(({ url }) => url.includes("/confirm")).map(({ body }) => JSON.parse(body));

describe("before the wallet signs", () => {
  test("a caller that does not choose pays nothing", async () => {
    script(offer, succeeded);
    // @ts-expect-error `choose` is required
    await expect(gateway.pay("pay_1", openWallet(), {})).rejects.toThrow(TypeError);
    // @ts-expect-error the options are required
    await expect(gateway.pay("pay_1", openWallet())).rejects.toThrow(TypeError);
    expect(requests).toEqual([]);
  });

  test("the caller chooses with the merchant and the amount before them", async () => {
    script(offer, succeeded);
    const shown: unknown[] = [];
    await pay({
      choose: ([one], { merchant, amount }) => {
        shown.push(merchant.name, amount.value);
        return one;
      },
    });
    expect(shown).toEqual(["Corner shop", "1250"]);
    expect(requests[0]?.url).toContain("includePaymentInfo=true");
  });

  test("a buyer who declines signs nothing, and the error says so", async () => {
    script(offer);
    expect(await fail({ choose: () => undefined })).toBeInstanceOf(PaymentDeclinedError);
    expect(requests).toHaveLength(1);
  });

  test("an option that was not offered is not paid", async () => {
    script(offer);
    const choose = ([one]: readonly PaymentOption[]) => one && { ...one, account: `${chain}:0x${"99".repeat(20)}` };
    expect(await fail({ choose })).toBeInstanceOf(TypeError);
    expect(requests).toHaveLength(1);
  });

  test.each([
    ["no list of options", { info, options: {} }],
    ["no info of the payment", { options: [option] }],
    ["an option that is none", { info, options: [null] }],
    ["an option without an account", { info, options: [{ ...option, account: 7 }] }],
    ["an option without an amount", { info, options: [{ ...option, amount: null }] }],
    ["an amount that is no number", { info, options: [{ ...option, amount: { ...option.amount, value: "x" } }] }],
    ["an option without actions", { info, options: [{ ...option, actions: null }] }],
    ["an action that is none", { info, options: [{ ...option, actions: [null] }] }],
    ["an action without data", { info, options: [{ ...option, actions: [{ type: "build" }] }] }],
  ])("%s is an unsafe answer of the service", async (_name, body) => {
    script(json(200, body));
    expect(await fail({})).toBeInstanceOf(UnsafeActionError);
  });

  test("built actions that are none are an unsafe answer of the service", async () => {
    const building = { ...option, actions: [{ type: "build", data: { data: "" } }] };
    script(json(200, { info, options: [building] }), json(200, { actions: {} }));
    expect(await fail({})).toBeInstanceOf(UnsafeActionError);
  });

  test("a signal that is aborted before the wallet is asked ends it", async () => {
    script(offer);
    const ending = new AbortController();
    const choose = ([one]: readonly PaymentOption[]) => {
      ending.abort("closed");
      return one;
    };
    expect(await fail({ choose, signal: ending.signal })).toBe("closed");
    expect(requests).toHaveLength(1);
  });
});

describe("what the wallet has sent reaches the service once, and the error has it for a repetition", () => {
  test("when the signal is aborted while the wallet asks its user", async () => {
    script(offer, processing);
    const ending = new AbortController();
    const wallet = openWallet(() => ending.abort("closed"));
    const error = await fail({ signal: ending.signal }, wallet);
    expect(error).toBeInstanceOf(ConfirmError);
    expect(error).toMatchObject({ request, cause: "closed" });
    expect(confirms()).toEqual([request]);
  });

  test("when the signal is aborted while the service does not answer", async () => {
    const ending = new AbortController();
    const answer = (response: ServerResponse) => {
      ending.abort("closed");
      reset(response);
    };
    script(offer, answer);
    expect(await fail({ signal: ending.signal })).toMatchObject({ name: "ConfirmError", request, cause: "closed" });
    expect(confirms()).toEqual([request]);
  });

  test("when the signal is aborted while the confirm is under way", async () => {
    const ending = new AbortController();
    const answer = (response: ServerResponse) => {
      ending.abort("closed");
      setImmediate(() => succeeded(response));
    };
    script(offer, answer);
    expect(await pay({ signal: ending.signal })).toMatchObject({ status: "succeeded" });
  });

  test("when the signal is aborted and the service never answers: five seconds later it ends", async () => {
    const ending = new AbortController();
    script(offer, () => {
      ending.abort("closed");
      vi.advanceTimersByTime(5_000);
    });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const error = await fail({ signal: ending.signal }).finally(() => vi.useRealTimers());
    expect(error).toMatchObject({ name: "ConfirmError", request, cause: "closed" });
  });

  test("when storing it fails", async () => {
    script(offer, processing);
    for (const onSigned of [
      () => Promise.reject(new Error("disk full")),
      () => {
        throw new Error("disk full");
      },
    ]) {
      script(offer, processing);
      const error = await fail({ onSigned });
      expect(error).toMatchObject({ name: "ConfirmError", request, cause: { message: "disk full" } });
      expect(confirms()).toEqual([request]);
    }
  });

  test("when the service refuses it", async () => {
    script(offer, json(400, { code: "invalid_params", message: "results: no" }));
    expect(await fail({})).toMatchObject({ name: "ConfirmError", request, cause: { code: "invalid_params" } });
  });

  test("when the time is over, whether the service can be reached or not", async () => {
    for (const answer of [reset, processing]) {
      script(offer, answer);
      const error = await fail({ timeoutMs: 50 });
      expect(error).toMatchObject({ name: "ConfirmError", request, cause: expect.any(WaitTimeoutError) });
      expect(confirms().length).toBeGreaterThan(0);
    }
  });

  test("and a timeout without end never ends the waiting", async () => {
    script(offer, processing, succeeded);
    expect(await pay({ timeoutMs: Number.POSITIVE_INFINITY })).toMatchObject({ status: "succeeded" });
  });
});

test("an error of the wallet, which has not sent anything, is the caller's as it is", async () => {
  script(offer);
  const declined = new Error("declined");
  const wallet = openWallet(() => {
    throw declined;
  });
  expect(await fail({}, wallet)).toBe(declined);
});
