import { createServer } from "node:http";
import { BaseError, HttpRequestError, RpcRequestError, TimeoutError } from "viem";
import { expect, test } from "vitest";
import { openHttpTransport } from "../../../../chains/evm/http-transport.ts";
import { classifyLogError } from "../../../../chains/evm/log-errors.ts";
import { listen } from "../../../support/listen.ts";

type Given = { status?: number; headers?: Record<string, string>; body: string };

/** Starts an endpoint that gives this answer to every call. Returns the error of a call with signed bytes, or its result. */
async function findError(given: Given, maxMs = 5_000): Promise<unknown> {
  const send = openHttpTransport(await serve(given), maxMs);
  return await send({ method: "eth_sendRawTransaction", params: ["0x5167"] }).then(
    (result) => ({ result }),
    (error: unknown) => error,
  );
}

async function serve({ status = 200, headers = {}, body }: Given): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    if (body !== "never") response.writeHead(status, headers).end(body);
  });
  return await listen(server);
}

/** Returns the first cause of an error that has a class. */
function causeOf<T extends Error>(error: unknown, kind: new (...args: never[]) => T): T | undefined {
  const found = error instanceof BaseError ? error.walk((cause) => cause instanceof kind) : undefined;
  return found instanceof kind ? found : undefined;
}

test("an error with a code and a message is an error of the call, whatever the status of the response", async () => {
  for (const status of [200, 400, 500]) {
    const body = JSON.stringify({ error: { code: 3, message: "execution reverted", data: "0x01" } });
    const error = await findError({ status, body });
    expect(causeOf(error, RpcRequestError)).toMatchObject({ code: 3, details: "execution reverted", data: "0x01" });
  }
});

test.each([
  { status: 502, body: "<html>" },
  { status: 503, body: JSON.stringify({ error: { message: "busy" } }) },
  { status: 500, body: JSON.stringify({ result: "0x1" }) },
  { body: "<html>" },
  { body: "null" },
  { body: '"0x1"' },
  { body: JSON.stringify({ error: "busy" }) },
])("an answer without a result and without such an error counts as none: $status %#", async (given) => {
  expect(causeOf(await findError(given), HttpRequestError)).toBeDefined();
});

test("an answer of 20 MB is read, and one of more than 64 MiB is an error of the call, which suspends no endpoint", async () => {
  const filled = (bytes: number) => JSON.stringify({ result: "0".repeat(bytes) });
  expect(await findError({ body: filled(20_000_000) }, 30_000)).toEqual({ result: "0".repeat(20_000_000) });
  const error = await findError({ body: filled(65 * 2 ** 20) }, 30_000);
  expect(causeOf(error, RpcRequestError)?.details).toBe("response too large");
  expect(classifyLogError(error)).toMatchObject({ kind: "too_large" });
});

test("a refusal of too many calls says how long to wait, also when its body is a JSON-RPC error", async () => {
  const body = JSON.stringify({ error: { code: -32_005, message: "slow down" } });
  const error = await findError({ status: 429, headers: { "retry-after": "7" }, body });
  const found = causeOf(error, HttpRequestError);
  expect({ status: found?.status, wait: found?.headers?.get("retry-after") }).toEqual({ status: 429, wait: "7" });
});

test("an endpoint that does not answer in time is a timeout", async () => {
  expect(causeOf(await findError({ body: "never" }, 50), TimeoutError)).toBeDefined();
});

test("an answer whose error is null is a result", async () => {
  expect(await findError({ body: '{"result":"0x1","error":null}' })).toEqual({ result: "0x1" });
});

test("no error names the bytes of the request", async () => {
  for (const given of [
    { body: "never" },
    { body: "<html>" },
    { body: JSON.stringify({ error: { code: -32_000, message: "refused" } }) },
  ]) {
    for (let error = await findError(given, 50); error instanceof Error; error = error.cause)
      expect(`${error.message} ${JSON.stringify(error)}`).not.toContain("5167");
  }
});

test("the name and the password in an endpoint's URL are sent as Basic authentication, and are in no error", async () => {
  const sent: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    request.resume();
    sent.push(request.headers.authorization);
    response.writeHead(500).end();
  });
  const url = new URL(await listen(server));
  Object.assign(url, { username: "shop", password: "pass word" });
  const error = await openHttpTransport(url.href, 5_000)({ method: "eth_chainId" }).catch((thrown: unknown) => thrown);
  expect(sent).toEqual([`Basic ${Buffer.from("shop:pass word").toString("base64")}`]);
  expect(`${error} ${JSON.stringify(error)}`).not.toContain("pass");
});
