import { HttpRequestError, RpcRequestError, TimeoutError } from "viem";
import { expect, test } from "vitest";
import { readWaitMs } from "../../../../chains/evm/rpc-errors.ts";

const now = new Date("2026-01-01T00:00:00Z");
const url = "https://rpc.example";
const refused = (retryAfter?: string) =>
  new HttpRequestError({ url, status: 429, headers: new Headers(retryAfter ? { "retry-after": retryAfter } : {}) });
const answered = (message: string) => new RpcRequestError({ url, body: {}, error: { code: -32_090, message } });

test.each([
  ["names seconds", refused("7"), 7_000],
  ["names a date", refused("Thu, 01 Jan 2026 00:00:12 GMT"), 12_000],
  ["names a date that has passed", refused("Wed, 31 Dec 2025 23:59:00 GMT"), 0],
  ["names more than a minute", refused("86400"), 60_000],
  ["names nothing", refused(), 1_000],
  ["names something else", refused("soon"), 1_000],
  [
    "is an error in JSON that names seconds",
    answered("Too many requests, reason: call rate limit exhausted, retry in 10s"),
    10_000,
  ],
  ["is an error in JSON", answered("daily request count exceeded, request rate limited"), 1_000],
])("an endpoint whose rate limit %s is not asked for that time", (_, error, ms) => {
  expect(readWaitMs(error, now)).toBe(ms);
});

test.each([
  ["an error of the server", new HttpRequestError({ url, status: 500 })],
  ["no answer in time", new TimeoutError({ url, body: {} })],
  ["any other error in JSON", answered("nonce too low")],
])("%s is not a rate limit", (_, error) => {
  expect(readWaitMs(error, now)).toBeUndefined();
});
