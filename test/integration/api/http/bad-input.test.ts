import { beforeAll, describe, expect, test } from "vitest";
import {
  type Answer,
  type Api,
  countRows,
  makeMerchant,
  makePayment,
  startApi,
  type TestMerchant,
} from "../start-api.ts";

let api: Api;
let shop: TestMerchant;
let id: string;

beforeAll(async () => {
  api = await startApi();
  shop = await makeMerchant(api);
  id = await makePayment(api, shop);
});

const good = { amount: { unit: "iso4217/USD", value: "500" } };
const account = `eip155:31337:0x${"cc".repeat(20)}`;
const gateway = (step: string) => `/v1/gateway/payment/${id}/${step}`;

/** Expects that the request is refused with an ErrorResponse and nothing else, and that no row is inserted. */
async function expectRefused(ask: () => Promise<Answer>): Promise<{ status: number; code: unknown; message: unknown }> {
  const before = await countRows(api);
  const { status, headers, body } = await ask();
  expect(Object.keys(body).sort()).toEqual(["code", "message"]);
  expect(headers.get("content-type")).toMatch(/^application\/json/);
  expect(headers.get("x-request-id")).toBeTruthy();
  expect(await countRows(api)).toEqual(before);
  return { status, code: body["code"], message: body["message"] };
}

describe("creating a payment", () => {
  const amounts: [string, unknown, RegExp][] = [
    ["no amount", undefined, /^amount: /],
    ["an amount that is text", "500", /^amount: /],
    ["no value", { unit: "iso4217/USD" }, /^amount\.value: /],
    ["a number for value", { unit: "iso4217/USD", value: 500 }, /^amount\.value: /],
    ["zero", { unit: "iso4217/USD", value: "0" }, /^amount\.value: /],
    ["a leading zero", { unit: "iso4217/USD", value: "0500" }, /^amount\.value: /],
    ["a sign", { unit: "iso4217/USD", value: "-500" }, /^amount\.value: /],
    ["a fraction", { unit: "iso4217/USD", value: "5.00" }, /^amount\.value: /],
    ["79 digits", { unit: "iso4217/USD", value: "9".repeat(79) }, /^amount\.value: /],
    ["no unit", { value: "500" }, /^amount\.unit: /],
    ["a unit without its prefix", { unit: "USD", value: "500" }, /^amount\.unit: /],
    ["an unknown currency", { unit: "iso4217/XQQ", value: "500" }, /^amount\.unit: /],
    ["an invalid asset", { unit: "caip19/eip155:31337", value: "500" }, /^amount\.unit: /],
  ];
  const others: [string, object, RegExp][] = [
    ["a reference of 256 characters", { referenceId: "x".repeat(256) }, /^referenceId: /],
    ["a reference of two lines", { referenceId: "a\nb" }, /^referenceId: /],
    ["a reference with a zero byte", { referenceId: "a\0" }, /^referenceId: /],
    ["a time in the past", { expiresAt: 1_000_000_000 }, /^expiresAt: /],
    ["a time in milliseconds", { expiresAt: Date.now() + 60_000 }, /^expiresAt: /],
    ["a time as text", { expiresAt: "2030-01-01T00:00:00Z" }, /^expiresAt: /],
  ];
  const bodies: [string, unknown, RegExp][] = [
    ...amounts.map(([name, amount, names]): [string, unknown, RegExp] => [name, { amount }, names]),
    ...others.map(([name, more, names]): [string, unknown, RegExp] => [name, { ...good, ...more }, names]),
    ["a list for a body", [], /^body: /],
    ["null for a body", null, /^body: /],
  ];

  describe.each(["/v1/payments", "/v1/merchant/payment"])("creating a payment at %s", (path) => {
    test.each(bodies)("a body with %s is refused, and the message names the member", async (_name, body, names) => {
      const { status, code, message } = await expectRefused(() => api.post(path, shop.headers, body));
      expect([status, code]).toEqual([400, "params_validation"]);
      expect(message).toMatch(names);
    });

    test("a request without a body is refused", async () => {
      expect(await expectRefused(() => api.ask("POST", path, { headers: shop.headers }))).toMatchObject({
        status: 400,
        code: "params_validation",
      });
    });
  });

  test("the message names every invalid member", async () => {
    const body = { amount: { unit: "USD", value: "0" }, referenceId: "" };
    const { message } = await expectRefused(() => api.post("/v1/payments", shop.headers, body));
    for (const name of ["amount.unit: ", "amount.value: ", "referenceId: "]) expect(message).toContain(name);
  });

  test.each([
    ["a checkout that is not an object", "https://shop.test"],
    ["one URL only", { successUrl: "https://shop.test/ok" }],
    ["plain http", { successUrl: "http://shop.test/ok", errorUrl: "https://shop.test/no" }],
    ["a zero byte in a URL", { successUrl: "https://shop.test/\0", errorUrl: "https://shop.test/no" }],
    ["an unpaired surrogate in a URL", { successUrl: "https://shop.test/ok", errorUrl: "https://shop.test/\ud800" }],
    ["a javascript: URL", { successUrl: "javascript:alert(1)", errorUrl: "https://shop.test/no" }],
  ])("a payment is created without a redirect for %s, and the response warns", async (_name, checkout) => {
    const { status, body } = await api.post("/v1/payments", shop.headers, { ...good, checkout });
    expect(status).toBe(201);
    expect(body["warnings"]).toEqual([{ field: "checkout", message: expect.stringMatching(/^is ignored: .*https/) }]);
    const rows = await api.db
      .selectFrom("payment")
      .select("checkout")
      .where("id", "=", String(body["paymentId"]))
      .execute();
    expect(rows).toEqual([{ checkout: null }]);
  });

  test("a payment that expires later than allowed is shortened to a day, and the response warns", async () => {
    const create = (hours: number) =>
      api.post("/v1/payments", shop.headers, { ...good, expiresAt: Math.floor(Date.now() / 1_000) + hours * 3_600 });
    const { body } = await create(25);
    expect(body["warnings"]).toEqual([
      { field: "expiresAt", message: expect.stringMatching(/^is shortened: .*24 hours/) },
    ]);
    expect((await create(23)).body["warnings"]).toEqual([]);
  });

  test("a creation with misspelt members warns of each by its name, without its value, and up to five", async () => {
    const warningsOf = async (more: object, path = "/v1/payments") =>
      (await api.post(path, shop.headers, { ...good, ...more })).body["warnings"];
    const ignored = (field: string) => ({ field, message: "is ignored: is not known" });
    const misspelt = { reference_id: "order-1", meta: { secret: "x" } };
    for (const path of ["/v1/payments", "/v1/merchant/payment"])
      expect(await warningsOf(misspelt, path)).toEqual([ignored("reference_id"), ignored("meta")]);
    // The 200th character of the second name is half of a pair.
    const many = ["toString", `${"a".repeat(199)}\u{1f600}`, "c", "d", "e", "f"];
    expect(await warningsOf(Object.fromEntries(many.map((name) => [name, 1])))).toEqual(
      ["toString", `${"a".repeat(199)}\ufffd`, "c", "d", "e"].map(ignored),
    );
  });

  test("a payment returns buyers to a shop without TLS only on the same machine, and only where the operator allows private addresses", async () => {
    const local = await startApi({ databaseUrl: api.databaseUrl, allowsPrivateHooks: true });
    const checkout = { successUrl: "http://localhost:3000/ok", errorUrl: "http://127.0.0.1:3000/no" };
    const create = async (to: Api, given: object) => {
      const { body } = await to.post("/v1/payments", shop.headers, { ...good, checkout: given });
      const kept = (await to.get(`/v1/payments/${body["paymentId"]}`, shop.headers)).body["checkout"];
      return { kept, warnings: (body["warnings"] as unknown[]).length };
    };
    expect(await create(api, checkout)).toEqual({ kept: null, warnings: 1 });
    expect(await create(local, checkout)).toEqual({ kept: checkout, warnings: 0 });
    for (const errorUrl of ["http://shop.localhost/no", "http://[::1]:3000/no"])
      expect(await create(local, { ...checkout, errorUrl })).toMatchObject({ warnings: 0 });
    for (const errorUrl of [
      "javascript:alert(1)",
      "ftp://localhost/no",
      "http://name:password@localhost/no",
      "http://shop.test/no",
      "http://localhost.shop.test/no",
      "http://10.0.0.7/no",
    ])
      expect(await create(local, { ...checkout, errorUrl })).toEqual({ kept: null, warnings: 1 });
  });

  test("a payment keeps a checkout whose URLs are both https, and unknown members are ignored", async () => {
    const checkout = { successUrl: "https://shop.test/ok", errorUrl: "https://shop.test/no" };
    const made = await makePayment(api, shop, { checkout, surprise: { a: 1 }, referenceId: null });
    const rows = await api.db
      .selectFrom("payment")
      .select(["checkout", "reference_id"])
      .where("id", "=", made)
      .execute();
    expect(rows).toEqual([{ checkout, reference_id: null }]);
  });
});

describe("the gateway", () => {
  const confirm = { optionId: "opt_x", results: [{ type: "walletRpc", data: ["0x00"] }] };
  const bodies: [string, string, unknown, RegExp][] = [
    ["no accounts", "options", {}, /^accounts: /],
    ["an empty list of accounts", "options", { accounts: [] }, /^accounts: /],
    [
      "501 accounts",
      "options",
      { accounts: Array.from({ length: 501 }, (_, index) => `eip155:31337:0x${String(index).padStart(40, "0")}`) },
      /^accounts: expected at most 500/,
    ],
    ["an account that is a number", "options", { accounts: [1] }, /^accounts\.0: /],
    [
      "only accounts without a chain",
      "options",
      { accounts: [`0x${"cc".repeat(20)}`, ""] },
      /^accounts: expected CAIP-10/,
    ],
    ["an invalid flag", "options?includePaymentInfo=yes", { accounts: [account] }, /^includePaymentInfo: /],
    ["no option to fetch", "fetch", { data: "" }, /^optionId: /],
    ["data that is an object", "fetch", { optionId: "opt_x", data: {} }, /^data: /],
    ["an option with a zero byte", "fetch", { optionId: "opt_\0", data: "" }, /^optionId: /],
    ["an option that is not of the payment", "fetch", { optionId: "opt_x", data: "" }, /^optionId: /],
    ["no results", "confirm", { optionId: "opt_x" }, /^results: /],
    ["17 results", "confirm", { ...confirm, results: Array(17).fill(confirm.results[0]) }, /^results: /],
    [
      "a result of another type",
      "confirm",
      { ...confirm, results: [{ type: "build", data: ["x"] }] },
      /^results\.0\.type: /,
    ],
    [
      "a result without data",
      "confirm",
      { ...confirm, results: [{ type: "walletRpc", data: [] }] },
      /^results\.0\.data: /,
    ],
    [
      "data that is a number",
      "confirm",
      { ...confirm, results: [{ type: "walletRpc", data: [7] }] },
      /^results\.0\.data\.0: /,
    ],
    [
      "an unpaired surrogate",
      "confirm",
      { ...confirm, results: [{ type: "walletRpc", data: ["\ud800"] }] },
      /^results\.0\.data\.0: /,
    ],
    ["an option that is not of the payment, confirmed", "confirm", confirm, /^optionId: /],
    [
      "collected data in the flat form",
      "confirm",
      { ...confirm, collectedData: { fullName: "A" } },
      /^collectedData\.fields: /,
    ],
    [
      "a collected value that is not a string",
      "confirm",
      { ...confirm, collectedData: { fields: [{ id: "tosConfirmed", value: true }] } },
      /^collectedData\.fields\.0\.value: /,
    ],
    ["a negative wait", "confirm?maxPollMs=-1", confirm, /^maxPollMs: /],
  ];
  test.each(bodies)("the gateway refuses %s, and the message names the member", async (_name, step, body, names) => {
    const { status, code, message } = await expectRefused(() => api.post(gateway(step), shop.wallet, body));
    expect([status, code]).toEqual([400, "invalid_params"]);
    expect(message).toMatch(names);
  });

  test.each(["abc", "-1", "1.5", "", "1&maxPollMs=2"])("the gateway refuses maxPollMs=%s", async (wait) => {
    const { status, code, message } = await expectRefused(() =>
      api.get(gateway(`status?maxPollMs=${wait}`), shop.wallet),
    );
    expect([status, code]).toEqual([400, "invalid_params"]);
    expect(message).toMatch(/^maxPollMs: /);
  });

  test.each(["nope", "pay_1", `pay_${"0".repeat(32)}`, "a%2Fb", "%00", "pay_%F0%9F%98%80", "x".repeat(2_000)])(
    "the payment id %s is unknown",
    async (name) => {
      const steps = ["", "/status", "/status?maxPollMs=5000"].map((step) => `/v1/gateway/payment/${name}${step}`);
      for (const path of steps)
        expect(await expectRefused(() => api.get(path, shop.wallet))).toMatchObject({
          status: 404,
          code: "payment_not_found",
        });
      for (const [step, body] of [
        ["options", { accounts: [account] }],
        ["fetch", { optionId: "o", data: "" }],
        ["confirm", confirm],
      ] as const)
        expect(
          await expectRefused(() => api.post(`/v1/gateway/payment/${name}/${step}`, shop.wallet, body)),
        ).toMatchObject({
          status: 404,
          code: "payment_not_found",
        });
      expect(await expectRefused(() => api.get(`/v1/payments/${name}/status`, shop.headers))).toMatchObject({
        status: 404,
        code: "payment_not_found",
      });
    },
  );
});

test.each([
  ["GET", "/v1/refunds/x", "no such refund"],
  ["POST", "/v1/refunds/x/withdraw", "no such refund"],
  ["PUT", "/v1/merchants/mrch_x/settlements/crypto/crypto_x", "no such settlement"],
  ["POST", "/v1/merchants/mrch_x/settlements/changes/undefined/reject", "no such change of a settlement"],
  ["POST", "/v1/merchants/mrch_x/approval-keys/9F0C/revoke", "the merchant has no such approval key"],
  ["GET", "/v1/payments/x", "no such payment"],
] as const)("%s %s names the object that does not exist", async (method, path, message) => {
  expect(await expectRefused(() => api.ask(method, path, { headers: shop.headers }))).toMatchObject({
    status: 404,
    message,
  });
});

test.each(["/v1/statement", "/v1/statement.csv"])(
  "%s refuses days that no calendar has, and the message names them",
  async (path) => {
    const [from, until] = ["from", "until"].map((name) => `${name}: expected a date such as 2026-03-31`);
    for (const [period, message] of [
      ["from=0000-01-01&until=2026-03-31", from],
      ["from=0000-01-01&until=0000-12-31", `${from}; ${until}`],
      ["from=2026-01-01&until=2026-02-30", until],
    ])
      expect(await expectRefused(() => api.get(`${path}?${period}`, shop.headers))).toEqual({
        status: 400,
        code: "params_validation",
        message,
      });
  },
);

test.each(["0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])(
  "the time %s, which no response could show in UTC, is refused by name",
  async (expiresAt) => {
    const body = { scopes: ["payments:read"], expiresAt };
    expect(await expectRefused(() => api.post("/v1/api-keys", shop.headers, body))).toEqual({
      status: 400,
      code: "params_validation",
      message: "expiresAt: expected a time such as 2026-03-01T12:00:00Z",
    });
  },
);

test("an error about an id says whose id is expected, and shows no pattern", async () => {
  expect(await expectRefused(() => api.get("/v1/refunds?paymentId=x", shop.headers))).toMatchObject({
    message: "paymentId: expected a payment's id",
  });
});

describe("a request that cannot be read", () => {
  const send = (text: string, type = "application/json") =>
    expectRefused(() => api.ask("POST", "/v1/payments", { text, headers: { ...shop.headers, "content-type": type } }));

  test("a body that is not JSON is refused", async () => {
    for (const text of ["{", "{'a':1}", '{"a":1}}', '{"__proto__":'])
      expect(await send(text)).toMatchObject({ status: 400, code: "invalid_params", message: "the body is not JSON" });
  });

  test("JSON with a name that could change what an object inherits is refused for that name", async () => {
    const message = "the body has a member named __proto__, or a constructor with a prototype";
    for (const more of ['"metadata":{"__proto__":"x"}', '"constructor":{"prototype":{}}'])
      expect(await send(`{"amount":{"unit":"iso4217/USD","value":"500"},${more}}`)).toMatchObject({
        status: 400,
        code: "invalid_params",
        message,
      });
  });

  test("text that is not UTF-8 is refused, because it would be stored damaged", async () => {
    const create = (referenceId: Buffer, more: Record<string, string>) => {
      const [head = "", tail = ""] = JSON.stringify({ ...good, referenceId: "?" }).split("?");
      const body = Buffer.concat([Buffer.from(head), referenceId, Buffer.from(tail)]);
      const headers = { ...shop.headers, "content-type": "application/json", ...more };
      return fetch(`${api.url}/v1/payments`, { method: "POST", headers, body }).then(async (answer) => {
        const { message = null } = (await answer.json()) as { message?: string };
        return [answer.status, message];
      });
    };
    const [latin1, text] = [Buffer.from([0x63, 0x61, 0x66, 0xe9]), Buffer.from("café")];
    for (const damaged of [latin1, Buffer.from([0xff, 0xfe])])
      expect(await create(damaged, {})).toEqual([400, "the body is not UTF-8"]);
    for (const charset of ["iso-8859-1", '"ISO-8859-1"', "utf-16"])
      expect(await create(latin1, { "content-type": `application/json; charset=${charset}` })).toEqual([
        415,
        "expected the charset utf-8",
      ]);
    expect(await create(text, { "content-encoding": "gzip" })).toEqual([
      415,
      "expected a body without a content-encoding",
    ]);
    for (const accepted of [
      {},
      { "content-type": "application/json; charset=UTF-8" },
      { "content-encoding": "identity" },
    ])
      expect(await create(text, accepted)).toEqual([201, null]);
  });

  test("an empty body is refused for the members that it lacks", async () => {
    expect(await send("")).toMatchObject({ status: 400, code: "params_validation" });
  });

  test("a content type other than JSON is refused with 415", async () => {
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx"])
      expect(await send(JSON.stringify(good), type)).toMatchObject({ status: 415, code: "invalid_params" });
  });

  test("a body above 64 KiB is refused with 413, and one of 64 KiB is accepted", async () => {
    const filled = (size: number) => JSON.stringify(good).padEnd(size, " ");
    expect(await send(filled(64 * 1024 + 1))).toMatchObject({ status: 413, code: "invalid_params" });
    const headers = { ...shop.headers, "content-type": "application/json" };
    expect(await api.ask("POST", "/v1/payments", { text: filled(64 * 1024), headers })).toMatchObject({ status: 201 });
  });

  test("an unknown path is refused with 404, whatever the request carries", async () => {
    for (const path of ["/v1", "/v2/payments", "/v1/payment", "/v1/gateway/payment", "/favicon.ico"])
      expect(await expectRefused(() => api.get(path))).toMatchObject({ status: 404, code: "invalid_params" });
    const asked = { text: "<a/>", headers: { "content-type": "text/xml" } };
    expect(await expectRefused(() => api.ask("POST", "/nowhere", asked))).toMatchObject({
      status: 404,
      code: "invalid_params",
    });
  });

  test("an unsupported method is refused with 405 and the methods of the path", async () => {
    for (const [method, path, allow] of [
      ["PUT", "/v1/payments", "POST, GET, HEAD"],
      ["DELETE", "/v1/merchant/payment", "POST"],
      ["PUT", gateway("confirm"), "POST"],
      ["POST", gateway("status"), "GET, HEAD"],
      ["PATCH", `/v1/payments/${id}/status`, "GET, HEAD"],
      ["OPTIONS", "/v1/payments", "POST, GET, HEAD"],
    ] as const) {
      const answer = await api.ask(method, path, { headers: shop.headers });
      expect([answer.status, answer.body["code"], answer.headers.get("allow")]).toEqual([405, "invalid_params", allow]);
    }
  });

  test("a path with invalid encoding is refused", async () => {
    expect(await expectRefused(() => api.get("/v1/gateway/payment/%zz/status", shop.wallet))).toMatchObject({
      status: 400,
      code: "invalid_params",
    });
  });
});
