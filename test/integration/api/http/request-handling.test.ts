import { once } from "node:events";
import { connect } from "node:net";
import { beforeAll, describe, expect, test } from "vitest";
import { waitFor } from "../../../support/wait-for.ts";
import { type Api, makeMerchant, makePayment, startApi, type TestMerchant } from "../start-api.ts";

let api: Api;
let shop: TestMerchant;
let id: string;

beforeAll(async () => {
  api = await startApi();
  shop = await makeMerchant(api);
  id = await makePayment(api, shop);
});

describe("browsers", () => {
  test("a browser's preflight of a gateway call allows every header that wallets send", async () => {
    const asked = { "access-control-request-method": "POST", "access-control-request-headers": "app-id" };
    for (const path of [`/v1/gateway/payment/${id}/options`, `//v1/gateway/payment/${id}/status`]) {
      const { status, headers } = await api.ask("OPTIONS", path, {
        headers: { origin: "https://wallet.test", ...asked },
      });
      expect(status).toBe(204);
      expect(headers.get("access-control-allow-origin")).toBe("*");
      expect(headers.get("access-control-allow-methods")?.split(", ")).toEqual(expect.arrayContaining(["GET", "POST"]));
      expect(headers.get("access-control-allow-headers")?.split(", ")).toEqual(
        expect.arrayContaining(
          "accept content-type api-version api-key app-id client-id sdk-name sdk-version sdk-platform wcp-version".split(
            " ",
          ),
        ),
      );
    }
  });

  test("a browser may read the gateway's responses, errors included, and none of a merchant call", async () => {
    const origin = { origin: "https://wallet.test" };
    for (const path of [
      `/v1/gateway/payment/${id}/status`,
      "/v1/gateway/payment/pay_x/status",
      "/v1/gateway/nowhere",
    ]) {
      const { headers } = await api.get(path, { ...shop.wallet, ...origin });
      expect(headers.get("access-control-allow-origin")).toBe("*");
    }
    const { headers } = await api.get(`/v1/payments/${id}/status`, { ...shop.headers, ...origin });
    expect(headers.get("access-control-allow-origin")).toBeNull();
  });
});

describe("paths", () => {
  test("a path may begin with a second slash and end with one", async () => {
    for (const path of [`//v1/gateway/payment/${id}/status`, `/v1/gateway/payment/${id}/status/`]) {
      expect((await api.get(path, shop.wallet)).status).toBe(200);
    }
  });
});

describe("HEAD", () => {
  test("HEAD is answered wherever GET is, with the same status and without a body", async () => {
    for (const [path, headers] of [
      [`/v1/gateway/payment/${id}/status`, shop.wallet],
      [`/v1/payments/${id}`, shop.headers],
      ["/v1/payments", shop.headers],
      [`/v1/payments/pay_${"0".repeat(32)}`, shop.headers],
      ["/v1/payments", {}],
      ["/openapi.json", {}],
    ] as const) {
      const [get, head] = await Promise.all(
        ["GET", "HEAD"].map((method) => fetch(`${api.url}${path}`, { method, headers })),
      );
      expect(head?.status).toBe(get?.status);
      expect(head?.headers.get("content-type")).toBe(get?.headers.get("content-type"));
      expect(await head?.text()).toBe("");
    }
  });
});

describe("a request id", () => {
  test("a caller's request id is returned and logged", async () => {
    const { headers } = await api.get(`/v1/gateway/payment/${id}`, { ...shop.wallet, "x-request-id": "trace-1.a:b" });
    expect(headers.get("x-request-id")).toBe("trace-1.a:b");
    const listLines = () => api.lines.filter((line) => line.includes("trace-1.a:b"));
    await waitFor(() => listLines().length > 0, { within: 10_000 });
    expect(listLines()).toHaveLength(1);
  });

  test("a request whose body arrives after its headers has its id on all of its log lines", async () => {
    const body = JSON.stringify({ accounts: ["not-an-account", `eip155:1:0x${"11".repeat(20)}`] });
    const socket = connect(Number(new URL(api.url).port), "127.0.0.1");
    const headers = { ...shop.wallet, "content-type": "application/json", "x-request-id": "late-body" };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const path = `/v1/gateway/payment/${id}/options`;
    // The server says when it has read the headers.
    const sent = `expect: 100-continue\r\ncontent-length: ${body.length}\r\nhost: shop.test\r\n`;
    socket.write(`POST ${path} HTTP/1.1\r\n${lines.join("")}${sent}\r\n`);
    await once(socket, "data");
    // The server authenticates this call after the first one, which then waits for its body.
    await api.get(`/v1/gateway/payment/${id}`, shop.wallet);
    socket.write(body);
    await once(socket, "data");
    socket.destroy();
    const completed = () => api.lines.some((one) => one.includes("request completed") && one.includes("late-body"));
    await waitFor(completed, { within: 10_000 });
    const skipped = api.lines.findLast((line) => line.includes("malformed accounts skipped"));
    expect(skipped).toContain('"requestId":"late-body"');
  });

  test("an invalid request id is replaced", async () => {
    const given = "x".repeat(200);
    const { headers } = await api.get(`/v1/gateway/payment/${id}`, { ...shop.wallet, "x-request-id": given });
    expect(headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe("log lines and metrics", () => {
  test("a log line has route and status and no header, body or raw path", async () => {
    await api.get(`/v1/payments/${id}/status?maxPollMs=0`, { ...shop.headers, "x-request-id": "to-be-found" });
    const found = await waitFor(() => api.lines.find((one) => one.includes("to-be-found")), { within: 10_000 });
    const line = JSON.parse(found) as Record<string, unknown>;
    expect(line).toMatchObject({ level: "debug", method: "GET", route: "/v1/payments/:id/status", status: "200" });
    expect(line).toMatchObject({ account: shop.accountId, mode: "test" });
    const all = api.lines.join("");
    for (const secret of [shop.key, shop.wallet["app-id"], "maxPollMs"]) expect(all).not.toContain(secret);
  });

  test("requests are counted by route pattern, also when refused or not found", async () => {
    await api.get("/v1/nowhere/at/all");
    await api.get(`/v1/payments/${id}/status`, {});
    const listCounted = async () =>
      (await api.metrics.httpRequests.get()).values.map(
        ({ labels }) => `${labels.method} ${labels.route} ${labels.status}`,
      );
    const expected = ["GET unknown 404", "GET /v1/payments/:id/status 401"];
    await waitFor(async () => new Set(expected).isSubsetOf(new Set(await listCounted())), { within: 10_000 });
    expect((await listCounted()).join()).not.toContain(id);
  });
});

describe("an internal error", () => {
  test("an internal error returns 500 with a request id and no detail, and is logged", async () => {
    await api.db.schema.alterTable("payment").renameTo("payment_away").execute();
    try {
      const answer = await api.get(`/v1/gateway/payment/${id}`, { ...shop.wallet, "x-request-id": "broken-1" });
      expect([answer.status, answer.body["code"]]).toEqual([500, "internal_error"]);
      expect(answer.body["message"]).toContain("broken-1");
      expect(JSON.stringify(answer.body)).not.toMatch(/relation|payment_away|\.ts|select/);
    } finally {
      await api.db.schema.alterTable("payment_away").renameTo("payment").execute();
    }
    expect(api.lines.filter((line) => line.includes("broken-1")).join()).toContain('"level":"error"');
  });
});

describe("bytes that are not HTTP", () => {
  test.each([
    ["garbage", "GARBAGE\r\n\r\n", "HTTP/1.1 400 "],
    ["headers of 20 KiB", `GET / HTTP/1.1\r\nhost: a\r\nx: ${"x".repeat(20_000)}\r\n\r\n`, "HTTP/1.1 431 "],
  ])("a connection that sends %s gets an ErrorResponse", async (_name, bytes, begins) => {
    const answer = await sendBytes(api.url, bytes);
    expect(answer.slice(0, begins.length)).toBe(begins);
    expect(JSON.parse(answer.slice(answer.indexOf("\r\n\r\n")))).toEqual({
      code: "invalid_params",
      message: expect.any(String),
    });
  });
});

function sendBytes(url: string, bytes: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let answer = "";
  const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write(bytes));
  socket.on("data", (part) => {
    answer += part.toString();
  });
  socket.on("close", () => resolve(answer));
  socket.on("error", reject);
  return promise;
}

test("a client that sends no HTTP and keeps its half of the connection open is disconnected", async () => {
  const own = await startApi();
  const { hostname, port } = new URL(own.url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  const parts: string[] = [];
  socket.on("data", (part: Buffer) => parts.push(part.toString()));
  socket.on("error", () => undefined);
  socket.write("no HTTP at all\r\n\r\n");
  await once(socket, "end");
  expect(parts.join("")).toContain("400 Bad Request");
  await waitFor(async () => (await own.countConnections()) === 0, { within: 20_000 });
  socket.destroy();
});
