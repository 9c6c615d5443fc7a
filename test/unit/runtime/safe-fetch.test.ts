import type { IncomingMessage, ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { createSafeFetch, type SafeFetchRequest } from "../../../runtime/safe-fetch.ts";
import { startHttps } from "../../support/https-server.ts";

let serve: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) => response.end("hello");
let requests = 0;
const server = await startHttps(["logo.test", "other.test"], (request, response) => {
  requests += 1;
  serve(request, response);
});

/** The names that the fake resolver knows; a test may change an entry. */
const names: Record<string, string[]> = { "logo.test": ["127.0.0.1"], "other.test": ["127.0.0.1"] };
const resolve = async (name: string) => names[name] ?? [];
const free = createSafeFetch({ allowPrivate: true, ca: server.ca, resolve });
const guarded = createSafeFetch({ allowPrivate: false, ca: server.ca, resolve });
const url = `https://logo.test:${server.port}/a`;
const request = (more: Partial<SafeFetchRequest> = {}): SafeFetchRequest => ({
  method: "GET",
  url,
  timeoutMs: 3_000,
  maxBytes: 1_000,
  redirects: 2,
  ...more,
});
const hello = (_request: IncomingMessage, response: ServerResponse) => void response.end("hello");

test("a request uses TLS with the server's name and returns the complete response", async () => {
  serve = hello;
  expect(await free(request())).toMatchObject({ ok: true, status: 200, body: Buffer.from("hello") });
});

describe("the client never connects to a target outside the public internet:", () => {
  test.each([
    ["an address", "https://127.0.0.1/"],
    ["an address in another spelling", "https://2130706433/"],
    ["an address in octal", "https://0177.0.0.1/"],
    ["an address of IPv6", "https://[::1]/"],
    ["a mapped address", "https://[::ffff:127.0.0.1]/"],
    ["the metadata service", "https://169.254.169.254/latest/meta-data"],
    ["a name for a private address", url],
  ])("%s", async (_what, target) => {
    const before = requests;
    expect(await guarded(request({ url: target }))).toMatchObject({
      ok: false,
      reason: "is not on the public internet",
    });
    expect(requests).toBe(before);
  });

  test("a name with both public and private addresses", async () => {
    names["logo.test"] = ["93.184.216.34", "127.0.0.1"];
    expect(await guarded(request())).toMatchObject({ ok: false, reason: "is not on the public internet" });
    names["logo.test"] = ["127.0.0.1"];
  });

  /** Every name resolves to this machine; the test treats 127.0.0.2 as public. */
  const isPublic = (address: string) => address === "127.0.0.2";

  test("a name that resolves to a public address first and to a private one later", async () => {
    let times = 0;
    const turning = async () => (times++ === 0 ? ["127.0.0.2"] : ["127.0.0.1"]);
    const rebinding = createSafeFetch({ allowPrivate: false, ca: server.ca, isPublic, resolve: turning });
    let reached: string | undefined;
    serve = (incoming, response) => {
      reached = incoming.socket.localAddress;
      response.end("hello");
    };
    expect(await rebinding(request())).toMatchObject({ ok: true });
    expect([times, reached]).toEqual([1, "127.0.0.2"]);
  });

  test.each([
    ["an address", "https://127.0.0.1/b"],
    ["a name", "https://other.test/b"],
  ])("a redirect to %s", async (_what, location) => {
    const resolver = async (name: string) => (name === "logo.test" ? ["127.0.0.2"] : (names[name] ?? []));
    const careful = createSafeFetch({ allowPrivate: false, ca: server.ca, isPublic, resolve: resolver });
    serve = (_request, response) => void response.writeHead(302, { location }).end();
    const before = requests;
    expect(await careful(request())).toMatchObject({ ok: false, reason: "is not on the public internet" });
    expect(requests).toBe(before + 1);
  });
});

test.each([
  ["plain HTTP", "http://logo.test/", "expected an https URL"],
  ["another scheme", "file:///etc/passwd", "expected an https URL"],
  ["a password", "https://me:secret@logo.test/", "holds a user name or password"],
  ["no URL", "logo.test", "expected a URL"],
])("%s is refused", async (_what, target, reason) => {
  expect(await guarded(request({ url: target }))).toMatchObject({ ok: false, reason });
});

test("the client follows redirects up to the limit, and none when the limit is zero", async () => {
  serve = ({ url: path }, response) =>
    void (path === "/c"
      ? response.end("there")
      : response.writeHead(307, { location: path === "/a" ? "/b" : "/c" }).end());
  expect(await free(request())).toMatchObject({ ok: true, body: Buffer.from("there") });
  expect(await free(request({ redirects: 1 }))).toMatchObject({ ok: false, reason: "redirects more than 1 times" });
  expect(await free(request({ redirects: 0 }))).toMatchObject({ ok: true, status: 307 });
});

test("the client counts bytes as they arrive and ignores the declared length", async () => {
  serve = (_request, response) => {
    const more = setInterval(() => response.write(Buffer.alloc(400)), 5);
    response.on("close", () => clearInterval(more));
  };
  expect(await free(request())).toMatchObject({ ok: false, reason: "is larger than 1000 bytes" });
  serve = (_request, response) => void response.writeHead(200, { "content-length": "1001" }).end(Buffer.alloc(1_001));
  expect(await free(request())).toMatchObject({ ok: false, reason: "is larger than 1000 bytes" });
});

test("the time limit ends an endless body and a server that never responds", async () => {
  serve = (_request, response) => {
    const more = setInterval(() => response.write("."), 20);
    response.on("close", () => clearInterval(more));
  };
  expect(await free(request({ timeoutMs: 300 }))).toMatchObject({ ok: false, reason: "took longer than 0.3 s" });
  serve = () => undefined;
  expect(await free(request({ timeoutMs: 300 }))).toMatchObject({ ok: false, reason: "took longer than 0.3 s" });
  const never = createSafeFetch({ allowPrivate: true, resolve: () => new Promise(() => {}) });
  expect(await never(request({ timeoutMs: 300 }))).toMatchObject({ ok: false, reason: "took longer than 0.3 s" });
});

test("the client rejects a compressed body", async () => {
  serve = (_request, response) => void response.writeHead(200, { "content-encoding": "gzip" }).end("x");
  expect(await free(request())).toMatchObject({ ok: false, reason: "is compressed, which was not requested" });
});

test("a certificate for another name and a closed port are reported as unreachable", async () => {
  names["other-name.test"] = ["127.0.0.1"];
  serve = hello;
  const reason = "cannot be reached";
  expect(await free(request({ url: `https://other-name.test:${server.port}/` }))).toMatchObject({ ok: false, reason });
  expect(await free(request({ url: "https://logo.test:1/" }))).toMatchObject({ ok: false, reason });
});

test("the client posts a body with its length", async () => {
  serve = (incoming, response) => void incoming.pipe(response);
  expect(await free(request({ method: "POST", body: "grüße" }))).toMatchObject({ body: Buffer.from("grüße") });
});

describe("when the caller needs only the status", () => {
  test("the response resolves with its headers, whatever the body contains", async () => {
    serve = (_request, response) => {
      response.writeHead(202, { "content-encoding": "gzip" });
      const more = setInterval(() => response.write(Buffer.alloc(400)), 5);
      response.on("close", () => clearInterval(more));
    };
    expect(await free(request({ beginning: 4 }))).toMatchObject({ ok: true, status: 202 });
  });
});

describe("a keep-alive connection", () => {
  const kept = (more: Partial<SafeFetchRequest> = {}) => free(request({ keepAlive: true, ...more }));
  let ports: (number | undefined)[] = [];
  const listen = (answer: typeof serve) => {
    ports = [];
    serve = (incoming, response) => {
      ports.push(incoming.socket.remotePort);
      answer(incoming, response);
    };
  };

  test("a keep-alive connection is reused only by requests that set keepAlive", async () => {
    listen(hello);
    for (let round = 0; round < 3; round += 1) await kept();
    await free(request());
    expect([new Set(ports.slice(0, 3)).size, new Set(ports).size]).toEqual([1, 2]);
  });

  test("a keep-alive connection stays open after the time limit of its previous request", async () => {
    listen(hello);
    await kept({ timeoutMs: 300 });
    listen((_request, response) => void setTimeout(() => response.end("slow"), 600));
    expect(await kept()).toMatchObject({ ok: true, body: Buffer.from("slow") });
  });

  test("a keep-alive connection is replaced when the server has closed it", async () => {
    listen(hello);
    await kept();
    listen((incoming, response) => {
      if (ports.length === 1) incoming.socket.destroy();
      else response.end("there");
    });
    expect(await kept()).toMatchObject({ ok: true, body: Buffer.from("there") });
    expect(ports).toHaveLength(2);
  });

  test("a keep-alive connection is not reused for a name that now resolves to a private address", async () => {
    let address = "127.0.0.2";
    const isPublic = (one: string) => one === "127.0.0.2";
    const careful = createSafeFetch({ allowPrivate: false, ca: server.ca, isPublic, resolve: async () => [address] });
    listen(hello);
    expect(await careful(request({ keepAlive: true }))).toMatchObject({ ok: true });
    address = "127.0.0.1";
    expect(await careful(request({ keepAlive: true }))).toMatchObject({ ok: false, error: "private_address" });
    expect(ports).toHaveLength(1);
  });
});
