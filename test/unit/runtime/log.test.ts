import { BaseError, HttpRequestError, RpcRequestError } from "viem";
import { expect, test } from "vitest";
import { createLog, type Log } from "../../../runtime/log.ts";

const rawTransaction = `0x02f8b0${"ab".repeat(120)}`;
const signature = `0x${"5e".repeat(65)}`;
const hash = `0x${"c4".repeat(32)}`;

/** Runs `write` with a new log; returns the text that it would print on stdout, and the parsed lines. */
function capture(write: (log: Log) => void) {
  const lines: string[] = [];
  write(createLog({ level: "info", role: "worker" }, { write: (line) => void lines.push(line) }));
  return { text: lines.join(""), lines: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

test("a line is JSON with its level by name, an ISO time and the role", () => {
  const { lines } = capture((log) => log.info({ paymentId: "pay_1", amount: 10n }, "moved"));
  expect(lines).toEqual([
    expect.objectContaining({ level: "info", role: "worker", msg: "moved", paymentId: "pay_1", amount: "10" }),
  ]);
  expect(new Date(String(lines[0]?.["time"])).getTime()).toBeGreaterThan(0);
});

test.each([
  "key",
  "apiKey",
  "API_KEY",
  "privateKey",
  "secretKey",
  "password",
  "authorization",
  "Authorization",
  "signature",
  "rawTransaction",
  "DATABASE_URL",
  "mnemonic",
])("the log redacts the value of %s at any depth", (name) => {
  const secret = "correct-horse-battery";
  const { text } = capture((log) => {
    log.info({ [name]: secret }, "one");
    log.info({ a: { [name]: secret } }, "two");
    log.info({ a: { b: [{ c: { [name]: secret } }] } }, "five");
    log.error({ err: new Error("x", { cause: { [name]: secret } }), more: new Map([[name, secret]]) }, "error");
  });
  expect(text.match(/\[redacted\]/g)?.length).toBeGreaterThanOrEqual(3);
  expect(text).not.toContain(secret);
});

test("a child log redacts its bindings", () => {
  const { text, lines } = capture((log) => log.child({ apiKey: "hunter2-hunter2", paymentId: "pay_1" }).info("hello"));
  expect(text).not.toContain("hunter2");
  expect(lines[0]).toMatchObject({ apiKey: "[redacted]", paymentId: "pay_1" });
});

test("hashes, addresses and counts stay readable", () => {
  const { lines } = capture((log) => log.info({ hash, signatures: 3, signed: true, to: "0x00aa" }, "sent"));
  expect(lines[0]).toMatchObject({ hash, signatures: 3, signed: true, to: "0x00aa" });
});

test("the log redacts text that resembles a secret in any field", () => {
  const { text } = capture((log) => {
    log.info(`offered ${rawTransaction} signed ${signature}`);
    log.info(
      { note: "sent with svc_test_4f9aKq7Lw2Zx, whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD and Bearer abcdefghijklmnop" },
      "odd",
    );
    log.info({ note: "postgres://app:hunter2@db:5432/pay" }, "odd");
    log.info({ note: { wire: Buffer.from("abcabcabc") } }, "bytes");
  });
  expect(text).not.toMatch(/abab|5e5e|4f9aKq7|abcdefgh|hunter2|97,98/);
  expect(text).toContain("svc_test_[redacted], whsec_[redacted] and");
  expect(text).toContain("postgres://[redacted]@db:5432/pay");
});

test("a viem error is logged with its short message and its stack, without the request", () => {
  const body = { method: "eth_sendRawTransaction", params: [rawTransaction] };
  const url = "https://node.example/v3/0123456789secret";
  const http = new HttpRequestError({ body, url, details: "echo of the request", status: 502 });
  const rpc = new RpcRequestError({ body, url, error: { code: -32_000, message: "nonce too low" } });
  const outer = new BaseError("The transfer could not be sent.", { cause: rpc, metaMessages: [`from ${url}`] });
  for (const [error, short] of [
    [http, "HTTP request failed."],
    [outer, "The transfer could not be sent."],
  ] as const) {
    const { text, lines } = capture((log) => {
      log.error(error);
      log.error({ err: error });
      log.error({ err: error }, "said by us");
      log.error({ err: new Error(`wrapped: ${error.message}`) });
    });
    expect(text).not.toMatch(/0x02f8|secret|echo of|eth_sendRaw/);
    expect(lines.slice(0, 2).map((line) => line["msg"])).toEqual([short, short]);
    const stack = expect.stringMatching(/^\s+at .*log\.test\.ts/m);
    expect(lines[2]).toMatchObject({ msg: "said by us", err: { message: short, stack } });
  }
  const { lines } = capture((log) => log.error({ err: outer }));
  expect(lines[0]).toMatchObject({ err: { cause: { type: "RpcRequestError", code: -32_000 } } });
});

test("an error is logged with its code, its causes and its aggregated errors, and with no other member", () => {
  const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED", query: "select 'hunter2'" });
  const { text, lines } = capture((log) => log.error({ err: new AggregateError([refused], "all down") }));
  expect(lines[0]).toMatchObject({ msg: "all down", err: { errors: [{ code: "ECONNREFUSED" }] } });
  expect(text).not.toContain("hunter2");
});
