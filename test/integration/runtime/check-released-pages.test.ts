import { beforeEach, expect, test } from "vitest";
import { checkReleasedPages } from "../../../runtime/released-pages/check-released-pages.ts";
import release from "../../../runtime/released-pages/release.json" with { type: "json" };
import { createSafeFetch } from "../../../runtime/safe-fetch.ts";
import { createPagesCheck } from "../../../workers/check-pages.ts";
import { adminIn } from "../../support/admin.ts";
import { type AlterResponse, type ProxiedResponse, startWebProxy } from "../../support/web-proxy.ts";
import { makeMerchant, makePayment, startApi } from "../api/start-api.ts";

const proxy = await startWebProxy();
const api = await startApi({ publicUrl: proxy.url });
proxy.pointTo(api.url);
const ask = createSafeFetch({ allowPrivate: true });
const paymentId = await makePayment(api, await makeMerchant(api));
const { checkout, collect } = release.scripts;
const admin = adminIn({ DATABASE_URL: api.databaseUrl });

beforeEach(() => proxy.alter(undefined));

const checkPages = (id: string | undefined = paymentId) =>
  checkReleasedPages({ ask }, { publicUrl: `${proxy.url}/`, paymentId: id });
const asReleased = [
  { page: "checkout", differences: [] },
  { page: "collect", differences: [] },
];
/** Returns the differences of the checkout page, and expects none of the data page. */
async function checkChanged(alter: AlterResponse): Promise<string[]> {
  proxy.alter(alter);
  const [first, second] = await checkPages();
  expect(second).toEqual(asReleased[1]);
  if (!first || !("differences" in first)) throw new Error(`not checked: ${first?.notChecked}`);
  return first.differences;
}
const isPage = (path: string) => path.startsWith("/?pid=");
const without = (answer: ProxiedResponse, name: string): ProxiedResponse => {
  const { [name]: _, ...headers } = answer.headers;
  return { ...answer, headers };
};
const rewrite = (answer: ProxiedResponse, from: string | RegExp, to: string): ProxiedResponse => ({
  ...answer,
  body: Buffer.from(answer.body.toString("utf8").replace(from, to)),
});

test("a healthy deployment matches its release, with a payment and before there is one", async () => {
  expect(await checkPages()).toEqual(asReleased);
  expect(await checkReleasedPages({ ask }, { publicUrl: proxy.url })).toEqual(asReleased);
});

test("the page of an unknown payment has the headers of a known one", async () => {
  const [known, unknown] = await Promise.all([fetch(`${api.url}/?pid=${paymentId}`), fetch(`${api.url}/?pid=pay_no`)]);
  const headersOf = (of: Response) => Object.keys(release.headers.checkout).map((name) => of.headers.get(name));
  expect(headersOf(unknown)).toEqual(headersOf(known));
  expect([known.status, unknown.status]).toEqual([200, 404]);
});

test("headers that a TLS proxy adds are not a difference", async () => {
  const added = { "strict-transport-security": "max-age=1", via: "1.1 edge", server: "edge" };
  proxy.alter((_path, answer) => ({
    ...answer,
    headers: { ...answer.headers, ...added, vary: `${answer.headers["vary"]}, Origin` },
  }));
  expect(await checkPages()).toEqual(asReleased);
});

test.each(Object.keys(release.headers.checkout))("a dropped header %s is reported", async (name) => {
  expect(await checkChanged((path, answer) => (isPage(path) ? without(answer, name) : undefined))).toEqual([
    `the header ${name} is missing`,
  ]);
});

test("a header with another value is reported with both values", async () => {
  const found = await checkChanged((path, answer) =>
    isPage(path) ? { ...answer, headers: { ...answer.headers, "x-frame-options": "SAMEORIGIN" } } : undefined,
  );
  expect(found).toEqual(['the header x-frame-options is "SAMEORIGIN", expected "DENY"']);
});

test("a script with one changed byte is reported with its hash", async () => {
  const found = await checkChanged((path, answer) => {
    if (path !== checkout.path) return undefined;
    const body = Buffer.from(answer.body);
    body[100] = (body[100] ?? 0) ^ 1;
    return { ...answer, body };
  });
  expect(found).toEqual([
    expect.stringMatching(
      `^the script ${checkout.path} has the hash sha256-.{44}, expected ${RegExp.escape(checkout.integrity)}$`,
    ),
  ]);
});

test.each([
  [
    "an integrity that was removed",
    / integrity="[^"]*"/,
    "",
    [`the integrity of ${checkout.path} is missing, expected ${checkout.integrity}`],
  ],
  [
    "another integrity",
    checkout.integrity,
    "sha256-AAAA",
    [`the integrity of ${checkout.path} is sha256-AAAA, expected ${checkout.integrity}`],
  ],
  [
    "a second script",
    "</head>",
    '<script src="/assets/evil.js"></script></head>',
    ["a script that is not released: /assets/evil.js"],
  ],
  ["a script in the page", "</head>", "<script>steal()</script></head>", ["a script that is not released: inline"]],
  ["no script", /<script type="module"[^>]*><\/script>/, "", [`the script ${checkout.path} is missing`]],
  [
    "the script of another release",
    checkout.path,
    "/assets/checkout.0.js",
    ["a script that is not released: /assets/checkout.0.js", `the script ${checkout.path} is missing`],
  ],
] as const)("a page with %s is reported", async (_what, from, to, found) => {
  expect(await checkChanged((path, answer) => (isPage(path) ? rewrite(answer, from, to) : undefined))).toEqual(found);
});

test("a redirecting page and a missing or oversized script are reported", async () => {
  const away = { location: "https://evil.example.test/" };
  expect(
    await checkChanged((path, answer) => (isPage(path) ? { ...answer, status: 302, headers: away } : undefined)),
  ).toEqual(["the page redirects to https://evil.example.test/"]);
  expect(
    await checkChanged((path, answer) => (path === checkout.path ? { ...answer, status: 404 } : undefined)),
  ).toEqual([`the script ${checkout.path} does not exist`]);
  const body = Buffer.alloc(2_000_000);
  expect(await checkChanged((path, answer) => (path === checkout.path ? { ...answer, body } : undefined))).toEqual([
    `the script ${checkout.path} is larger than 1000000 bytes`,
  ]);
});

test("differences of a page are reported even when its script cannot be read", async () => {
  const found = await checkChanged((path, answer) => {
    if (path === checkout.path) return { ...answer, status: 403 };
    return isPage(path) ? without(answer, "content-security-policy") : undefined;
  });
  expect(found).toEqual(["the header content-security-policy is missing", `the script ${checkout.path} answers 403`]);
});

test("the data page is compared with its own headers and script", async () => {
  proxy.alter((path, answer) => {
    if (path === collect.path) return { ...answer, body: Buffer.from("steal()") };
    if (!path.startsWith("/collect/")) return undefined;
    return { ...answer, headers: { ...answer.headers, "cross-origin-opener-policy": "same-origin" } };
  });
  expect(await checkPages()).toEqual([
    asReleased[0],
    {
      page: "collect",
      differences: [
        'the header cross-origin-opener-policy is "same-origin", expected "unsafe-none"',
        expect.stringContaining(`the script ${collect.path} has the hash`),
      ],
    },
  ]);
});

test.each([
  ["unavailable", "away", "cannot be reached"],
  ["restarting", 502, "answers 502"],
  ["failing", 500, "answers 500"],
  ["busy", 429, "answers 429"],
  ["behind a login", 403, "answers 403"],
] as const)("an api that is %s is not checked, and counts as unchanged", async (_what, how, reason) => {
  proxy.alter((_path, answer) =>
    how === "away" ? how : { status: how, headers: {}, body: answer.body.subarray(0, 5) },
  );
  const notChecked = `the page ${reason}`;
  expect(await checkPages()).toEqual([
    { page: "checkout", notChecked },
    { page: "collect", notChecked },
  ]);
  // Only the scripts are unavailable: this is still no difference.
  proxy.alter((path, answer) => {
    if (!path.startsWith("/assets/")) return undefined;
    return how === "away" ? how : { ...answer, status: how };
  });
  expect(await checkPages()).toEqual([
    { page: "checkout", notChecked: `its script ${reason}` },
    { page: "collect", notChecked: `its script ${reason}` },
  ]);
});

test("a deployment on another database is not checked", async () => {
  expect(await checkPages(`pay_${"1".repeat(32)}`)).toMatchObject([
    { page: "checkout", notChecked: "the page answers 404, expected 200" },
    asReleased[1],
  ]);
});

test("an operator reads the result in words and in the exit code", async () => {
  const check = (...args: string[]) => admin("pages", "check", "--url", proxy.url, ...args);
  expect(await check()).toEqual({ code: 0, stdout: "checkout: as released\ncollect: as released\n", stderr: "" });
  proxy.alter((path, answer) => (isPage(path) ? without(answer, "x-frame-options") : undefined));
  expect(await check()).toEqual({
    code: 1,
    stdout: "checkout: differs\n  the header x-frame-options is missing\ncollect: as released\n",
    stderr: expect.stringContaining(proxy.url),
  });
  const { code, stdout } = await check("--json", "--payment", paymentId);
  expect({ code, value: JSON.parse(stdout) }).toEqual({
    code: 1,
    value: [{ page: "checkout", differences: ["the header x-frame-options is missing"] }, asReleased[1]],
  });
  proxy.alter(() => "away");
  expect(await check()).toMatchObject({
    code: 1,
    stdout: expect.stringContaining("checkout: not checked"),
  });
  expect(await admin("pages", "check")).toMatchObject({ code: 2, stderr: expect.stringContaining("--url") });
  expect(await admin("pages", "check", "--url", "pay.test")).toMatchObject({ code: 2 });
  expect(await admin("pages", "check", "--help")).toMatchObject({ code: 0, stdout: expect.stringContaining("1 when") });
});

test("a worker reports the number of differences and the time of the check, and an unavailable api changes neither", async () => {
  let time = 1_000_000;
  const { metrics } = api;
  const check = createPagesCheck({
    check: () => checkPages(),
    metrics,
    log: api.deps.log,
    now: () => new Date(time),
  });
  const readMetrics = async () => {
    const [differences, checkedAt] = await Promise.all([metrics.pageDifferences.get(), metrics.pageChecked.get()]);
    const of = ({ values }: typeof checkedAt) => values.map(({ labels: { page }, value }) => ({ page, value }));
    return { differences: of(differences), checkedAt: of(checkedAt) };
  };
  const both = (one: number, two: number) => [
    { page: "checkout", value: one },
    { page: "collect", value: two },
  ];
  // There was no check yet, so no difference is reported.
  expect(await readMetrics()).toEqual({ differences: [], checkedAt: both(1_000, 1_000) });
  await check();
  proxy.alter((path, answer) => (isPage(path) ? without(answer, "x-frame-options") : undefined));
  time = 2_000_000;
  await check();
  const changed = { differences: both(1, 0), checkedAt: both(2_000, 2_000) };
  expect(await readMetrics()).toEqual(changed);
  expect(api.lines.some((line) => line.includes("differs from its release") && line.includes("x-frame-options"))).toBe(
    true,
  );
  proxy.alter(() => "away");
  time = 3_000_000;
  await check();
  expect(await readMetrics()).toEqual(changed);
  proxy.alter(undefined);
  await check();
  expect(await readMetrics()).toEqual({ differences: both(0, 0), checkedAt: both(3_000, 3_000) });
});
