import { spawn } from "node:child_process";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { createSafeFetch, type SafeFetchRequest } from "../../../runtime/safe-fetch.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { startHttps } from "../../support/https-server.ts";
import { startNameServer } from "../../support/name-server.ts";
import { waitFor } from "../../support/wait-for.ts";

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
  timeoutMs: 60_000,
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

test("a response whose body does not end keeps no connection open when the caller needs only its beginning", async () => {
  const open = new Set<Socket>();
  serve = (incoming, response) => {
    open.add(incoming.socket);
    incoming.socket.once("close", () => open.delete(incoming.socket));
    response.writeHead(200, { "content-length": 60_000 }).write(Buffer.alloc(2_048));
  };
  for (let round = 0; round < 20; round += 1)
    expect(await free(request({ keepAlive: true, beginning: 2_048, maxBytes: 65_536 }))).toMatchObject({ ok: true });
  await waitFor(() => open.size === 0, { within: 5_000, what: "all connections are closed" });
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

describe("a name is resolved by its name servers", () => {
  /** What the name server answers; it never answers a question for another name. */
  const records: Record<string, readonly string[]> = {};
  const questions: string[] = [];
  let answers: (name: string, family: 4 | 6) => readonly string[] | undefined = (name) => records[name];
  const nameServers = startNameServer((name, family) => {
    questions.push(`${name} ${family}`);
    return answers(name, family);
  }).then((address) => [address]);
  const isPublic = (address: string) => address === "127.0.0.2";
  const open = async (more: { isPublic?: typeof isPublic } = {}) =>
    createSafeFetch({ allowPrivate: false, ca: server.ca, nameServers: await nameServers, ...more });

  test("while other work occupies all of the process's threads", async () => {
    records["logo.test"] = ["127.0.0.2"];
    serve = hello;
    // A lookup by the system would wait for the thread, which derives a key for minutes.
    const code = `
      import { pbkdf2 } from "node:crypto";
      import { createSafeFetch } from ${JSON.stringify(new URL("../../../runtime/safe-fetch.ts", import.meta.url).href)};
      const options = ${JSON.stringify({ allowPrivate: false, ca: server.ca, nameServers: await nameServers })};
      const safeFetch = createSafeFetch({ ...options, isPublic: (address) => address === "127.0.0.2" });
      let isFree = false;
      pbkdf2("", "", 1_000_000_000, 64, "sha512", () => { isFree = true; });
      const { ok, error } = await safeFetch(${JSON.stringify(request())});
      console.log(JSON.stringify({ ok, error, isFree }));`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
      env: { ...process.env, UV_THREADPOOL_SIZE: "1" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    addCleanup(() => child.kill("SIGKILL"));
    const [line] = await once(child.stdout, "data");
    child.kill("SIGKILL");
    expect(JSON.parse(String(line))).toEqual({ ok: true, isFree: false });
  });

  test.each([
    ["a private address", ["127.0.0.1"]],
    ["a public address and a private one of IPv6", ["93.184.216.34", "fd00::1"]],
    ["a public address of IPv6 and a private one", ["2606:2800:220:1::1", "10.0.0.1"]],
    ["a private address of IPv4 that is mapped to IPv6", ["::ffff:127.0.0.1"]],
  ])("and refused with %s", async (_what, addresses) => {
    records["logo.test"] = addresses;
    const before = requests;
    expect(await (await open())(request())).toMatchObject({ ok: false, error: "private_address" });
    expect(requests).toBe(before);
  });

  test("and connected to although a question for its addresses of IPv6 is never answered", async () => {
    answers = (_name, family) => (family === 4 ? ["127.0.0.2"] : undefined);
    serve = hello;
    const began = performance.now();
    expect(await (await open({ isPublic }))(request())).toMatchObject({ ok: true });
    // The name server is given up after six seconds.
    expect(performance.now() - began).toBeLessThan(5_000);
    answers = (name) => records[name];
  });

  test("and connected to at its second address when the first one refuses connections", async () => {
    records["logo.test"] = ["127.0.0.3", "127.0.0.2"];
    const second = await startHttps(["logo.test"], hello, "127.0.0.2");
    const careful = createSafeFetch({
      allowPrivate: false,
      ca: second.ca,
      nameServers: await nameServers,
      isPublic: () => true,
    });
    expect(await careful(request({ url: `https://logo.test:${second.port}/` }))).toMatchObject({ ok: true });
  });

  test("once for all requests that wait for it, and again for a later one", async () => {
    const asked = Promise.withResolvers<void>();
    answers = (name) => {
      asked.resolve();
      return name === "logo.test" ? undefined : records[name];
    };
    questions.length = 0;
    records["other.test"] = ["127.0.0.2"];
    serve = hello;
    const careful = await open({ isPublic });
    const hanging = Array.from({ length: 20 }, () => careful(request({ timeoutMs: 500 })));
    await asked.promise;
    expect(await careful(request({ url: `https://other.test:${server.port}/` }))).toMatchObject({ ok: true });
    expect((await Promise.all(hanging)).map((result) => !result.ok && result.error)).toEqual(Array(20).fill("timeout"));
    // On a slow machine some requests begin when the lookup of the first ones has ended, and these share a second one.
    const shared = questions.filter((one) => one.startsWith("logo.test"));
    expect(new Set(shared)).toEqual(new Set(["logo.test 4", "logo.test 6"]));
    expect(shared.length).toBeLessThanOrEqual(4);
    await careful(request({ url: `https://other.test:${server.port}/` }));
    expect(questions.filter((one) => one === "other.test 4")).toHaveLength(2);
    answers = (name) => records[name];
  });

  test("and reported as unreachable when it has no address", async () => {
    records["logo.test"] = [];
    expect(await (await open({ isPublic }))(request())).toMatchObject({ ok: false, error: "unreachable" });
  });
});
