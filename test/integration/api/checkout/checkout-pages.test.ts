import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { request } from "undici";
import { expect, test } from "vitest";
import { describeRelease } from "../../../../api/checkout/release/describe-release.ts";
import { addPolicy } from "../../../../payments/buyer-data/collection-policies.ts";
import release from "../../../../runtime/released-pages/release.json" with { type: "json" };
import { moveToState } from "../../../browser/browser-shop.ts";
import { insertOptionRow } from "../../../support/insert-rows.ts";
import { testActor } from "../../../support/test-actor.ts";
import { makeMerchant, makePayment, publicUrl, startApi } from "../start-api.ts";

const api = await startApi();
const merchant = await makeMerchant(api);
const shop = {
  successUrl: "https://shop.example.test/thanks?order=17#top",
  errorUrl: "https://shop.example.test/sorry",
};

/** Fetches a page as a browser does. */
async function open(path: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${api.url}${path}`, { headers });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

async function readStatus(id: string, query = "") {
  const answer = await api.get(`/checkout/${id}/status?${query}`);
  return answer.body;
}

test("the page opens under each form of a payment link and names the amount and the merchant", async () => {
  const id = await makePayment(api, merchant, { referenceId: "order-17" });
  for (const path of [`/?pid=${id}`, `/${id}`, `//${id}/`]) {
    const { status, text, headers } = await open(path);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(text).toContain('<h1 id="pay-title" tabindex="-1">Pay <bdi>$5.00</bdi> to <bdi>Shop</bdi></h1>');
    expect((await fetch(`${api.url}${path}`, { method: "HEAD" })).status).toBe(200);
    for (const part of ["order-17", id, `>${publicUrl}/?pid=${id}</textarea>`, "Nothing has been charged yet."])
      expect(text).toContain(part);
  }
});

test.each(["/?pid=pay_0", "/?pid=", "/", `/pay_${"0".repeat(32)}`, "/?pid=%00", "/?pid=a&pid=b"])(
  "a link to no payment (%s) shows that and nothing else",
  async (path) => {
    const { status, text } = await open(path);
    expect(status).toBe(404);
    expect(text).toContain("There is no payment under this link.");
    expect(text).not.toContain("Shop</bdi>");
  },
);

test("a browser gets a page whatever languages it requests", async () => {
  const id = await makePayment(api, merchant);
  for (const accepted of ["", "xx", ";;;q=,", "*", "en-US;q=zero", `${"de,".repeat(5_000)}`, "日本語"])
    expect((await open(`/?pid=${id}`, { "accept-language": encodeURI(accepted).slice(0, 8_000) })).status).toBe(200);
});

test("names and references are shown as text, never as markup", async () => {
  const evil = `</script><img src=x onerror="alert('1')">`;
  const hostile = await makeMerchant(api);
  await api.db.updateTable("merchant").set({ name: evil }).where("id", "=", hostile.merchantId).execute();
  const id = await makePayment(api, hostile);
  await api.db.updateTable("payment").set({ reference_id: evil }).where("id", "=", id).execute();
  const { text } = await open(`/?pid=${id}`);
  expect(text.match(/<img[^>]*>/g), "the payment's code only").toEqual([expect.stringContaining('class="qr"')]);
  expect(text.match(/<\/script>/g)).toHaveLength(2);
  expect(text).toContain("&lt;/script&gt;&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;");
});

test("a final payment redirects to the URL that the merchant stored, with the payment's id", async () => {
  const id = await makePayment(api, merchant, { checkout: shop });
  expect(await readStatus(id)).toMatchObject({ status: "requires_action", returnUrl: null });
  await moveToState(api, id, "succeeded");
  expect(await readStatus(id)).toMatchObject({
    returnUrl: `https://shop.example.test/thanks?order=17&payment_id=${id}#top`,
  });
  for (const state of ["failed", "expired", "cancelled"] as const) {
    const other = await makePayment(api, merchant, { checkout: shop });
    await moveToState(api, other, state);
    expect(await readStatus(other)).toMatchObject({ returnUrl: `https://shop.example.test/sorry?payment_id=${other}` });
    const { text } = await open(`/?pid=${other}&successUrl=https://evil.test&errorUrl=https://evil.test`);
    expect(text).not.toContain("evil.test");
  }
});

test("a checkout with one invalid URL of the two does not redirect", async () => {
  const id = await makePayment(api, merchant, { checkout: { ...shop, errorUrl: "http://shop.example.test/sorry" } });
  await moveToState(api, id, "succeeded");
  expect(await readStatus(id)).toMatchObject({ status: "succeeded", returnUrl: null });
  expect((await open(`/?pid=${id}`)).text).toContain("You can close this page.");
});

test("a page links to no stored URL that leaves TLS for another machine", async () => {
  const open = async (successUrl: string) => {
    const id = await makePayment(api, merchant);
    await api.db
      .updateTable("payment")
      .set({ checkout: { successUrl, errorUrl: successUrl } })
      .where("id", "=", id)
      .execute();
    await moveToState(api, id, "succeeded");
    return (await readStatus(id))["returnUrl"];
  };
  for (const url of ["http://shop.example.test/", "http://127.0.0.1.shop.example.test/", "javascript:alert(1)"])
    expect(await open(url)).toBeNull();
  for (const url of ["https://shop.example.test/", "http://localhost:3000/"])
    expect(await open(url)).toContain(`${url}?payment_id=`);
});

test("only an app scheme that the operator allows becomes a return link, which a plain browser does not show", async () => {
  const id = await makePayment(api, merchant);
  const back = async (url: string) => {
    const { text } = await open(`/?pid=${id}&returnUrl=${encodeURIComponent(url)}`);
    const [, href, hidden] = /<a id="app" class="button wide" href="([^"]*)"( hidden)?>/.exec(text) ?? [];
    return { href, isHidden: hidden !== undefined, isNamed: text.includes("Back to the app") };
  };
  for (const [url, href] of [
    ["mywallet://done", "mywallet://done"],
    ["mywallet://", "mywallet://"],
    ["MyWallet://Pay.Done/a/b%20c?to=0x1&amount=5#now", "mywallet://Pay.Done/a/b%20c"],
    ["myapp:///done", "myapp:///done"],
  ] as const)
    expect(await back(url)).toEqual({ href, isHidden: true, isNamed: true });
  for (const url of [
    "https://evil.test",
    "javascript:alert(1)",
    "JAVASCRIPT://%0aalert(1)",
    "data:text/html,x",
    "//evil.test",
    "x-safari-https://evil.test",
    "microsoft-edge:https://evil.test",
    "ethereum:0x1@1?value=1e18",
    "solana:abc?amount=1",
    "ms-appinstaller:?source=https://evil.test",
    "metamask://dapp",
    "mywallet:done",
    "mywallet://name@done",
    "mywallet://done:80",
    'mywallet://"><script>',
    " mywallet://done",
  ])
    expect({ url, ...(await back(url)) }).toEqual({ url, href: undefined, isHidden: false, isNamed: false });
});

test("the data page of a final payment links back to the payment with the buyer's settings, and to no foreign app", async () => {
  const id = await makePayment(api, merchant);
  await insertOptionRow(api.db, id, "eip3009");
  await moveToState(api, id, "expired");
  const back = async (query: string) => {
    const { text } = await open(`/collect/${id}/opt_${id}/${"w".repeat(22)}?back=1&${query}`);
    return /<a class="button main wide" href="([^"]+)"/.exec(text)?.[1]?.replaceAll("&amp;", "&");
  };
  const link = `${publicUrl}/?pid=${id}`;
  expect(await back("lang=ar&theme=dark&returnUrl=myapp%3A%2F%2Fdone")).toBe(
    `${link}&lang=ar&theme=dark&returnUrl=myapp%3A%2F%2Fdone`,
  );
  for (const url of ["https://evil.test", "javascript:alert(1)", "//evil.test"])
    expect(await back(`theme=pink&returnUrl=${encodeURIComponent(url)}`)).toBe(`${link}&lang=en`);
});

test("a status covers one payment only, and waits for a change", async () => {
  const id = await makePayment(api, merchant);
  const first = await readStatus(id);
  expect(Object.keys(first).toSorted()).toEqual(
    ["isFinal", "leftMs", "money", "returnUrl", "status", "txId", "txUrl", "version"].toSorted(),
  );
  const waiting = readStatus(id, `version=${first["version"]}`);
  await moveToState(api, id, "cancelled");
  expect(await waiting).toMatchObject({ status: "cancelled", isFinal: true, leftMs: 0, money: "none" });
  expect(await readStatus(id, `version=${first["version"]}&maxPollMs=1`)).toMatchObject({ status: "cancelled" });
});

test("the checkout routes answer 404 for an unknown payment", async () => {
  for (const path of ["status", "options", "fetch", "confirm", "simulate", "test-wallet"]) {
    const method = path.startsWith("status") ? "GET" : "POST";
    const answer = await api.ask(
      method,
      `/checkout/pay_${"0".repeat(32)}/${path}`,
      method === "POST" ? { json: {} } : {},
    );
    expect(answer).toMatchObject({ status: 404, body: { code: "payment_not_found" } });
  }
});

test("an option is refused for another payment, even of the same merchant, and accepted for its own", async () => {
  const collecting = await makeMerchant(api);
  await addPolicy(api.deps, {
    actor: testActor,
    merchantId: collecting.merchantId,
    asset: null,
    unit: null,
    minimum: null,
  });
  const [mine, other] = [await makePayment(api, collecting), await makePayment(api, collecting)];
  const accounts = [`eip155:31337:0x${"c1".repeat(20)}`];
  const { body, headers } = await api.post(`/checkout/${other}/options`, {}, { accounts });
  const session = { cookie: headers.get("set-cookie")?.split(";")[0] ?? "" };
  const [{ id: optionId, collectUrl }] = body["options"] as [{ id: string; collectUrl: string }];
  const collect = `collect/${collectUrl.split("/").at(-1)}`;
  const person = { fullName: "Zoë Quux", dob: "1990-02-28", tosConfirmed: "true" };
  const place = { pobCountry: "SE", pobAddress: "Uppsala 17" };
  const fields = Object.entries({ ...person, ...place }).map(([id, value]) => ({ id, value }));
  const results = [{ type: "walletRpc", data: [`0x${"11".repeat(64)}1b`] }];
  const callAll = async (id: string) => {
    const outcomes = [];
    for (const [path, more] of Object.entries({ fetch: { data: "" }, [collect]: { fields }, confirm: { results } })) {
      const answer = await api.post(`/checkout/${id}/${path}`, session, { optionId, ...more });
      outcomes.push([path.split("/")[0], answer.status, answer.body["message"]]);
    }
    return outcomes;
  };
  const written = async () => ({
    attempts: await api.db
      .selectFrom("attempt")
      .select("payment_id")
      .where("payment_id", "in", [mine, other])
      .execute(),
    collected: await api.db.selectFrom("collected_data").select("payment_id").where("attempt_id", "is", null).execute(),
  });
  expect(await callAll(mine)).toEqual([
    ["fetch", 400, "optionId: is not an option of this payment"],
    ["collect", 404, "no such payment"],
    ["confirm", 400, "optionId: is not an option of this payment"],
  ]);
  expect(await written()).toEqual({ attempts: [], collected: [] });
  expect(await callAll(other)).toEqual(["fetch", "collect", "confirm"].map((path) => [path, 200, undefined]));
  expect(await written()).toEqual({ attempts: [{ payment_id: other }], collected: [{ payment_id: other }] });
});

test("no other origin can read the checkout routes", async () => {
  const id = await makePayment(api, merchant);
  const { headers } = await api.get(`/checkout/${id}/status`, { origin: "https://evil.test" });
  expect(headers.has("access-control-allow-origin")).toBe(false);
  expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
});

test("a test payment can be simulated by hand, and a live one cannot", async () => {
  const id = await makePayment(api, merchant);
  const to = (payment: string, status: string) => api.post(`/checkout/${payment}/simulate`, {}, { status });
  expect(await to(id, "processing")).toMatchObject({ status: 200, body: { status: "processing" } });
  expect(await to(id, "cancelled")).toMatchObject({ status: 400, body: { code: "invalid_state" } });
  expect(await to(id, "succeeded")).toMatchObject({ status: 200, body: { status: "succeeded", money: "moved" } });
  const live = await makeMerchant(api, { mode: "live" });
  const real = await makePayment(api, live);
  for (const status of ["processing", "succeeded", "failed", "expired", "cancelled"])
    expect(await to(real, status)).toMatchObject({ status: 404, body: { code: "payment_not_found" } });
  expect(await readStatus(real)).toMatchObject({ status: "requires_action" });
  const { text } = await open(`/?pid=${real}`);
  for (const word of ["console", "Test payment"]) expect(text).not.toContain(word);
});

test("a final payment shows what became of the money, unclear only where the buyer could have sent some", async () => {
  const live = await makeMerchant(api, { mode: "live" });
  const [signed, pushed] = [await makePayment(api, live), await makePayment(api, live)];
  await insertOptionRow(api.db, signed, "eip3009");
  await insertOptionRow(api.db, pushed, "push");
  for (const id of [signed, pushed]) await moveToState(api, id, "expired");
  expect([await readStatus(signed), await readStatus(pushed)]).toMatchObject([{ money: "none" }, { money: "unclear" }]);
});

test("the checkout routes are limited per payment and address", async () => {
  const small = await startApi({ limits: { perPayment: 2 } });
  const shopkeeper = await makeMerchant(small);
  const [one, two] = [await makePayment(small, shopkeeper), await makePayment(small, shopkeeper)];
  const ask = (id: string) => small.get(`/checkout/${id}/status`);
  expect([(await ask(one)).status, (await ask(one)).status]).toEqual([200, 200]);
  const refused = await ask(one);
  expect(refused).toMatchObject({ status: 429, body: { code: "rate_limited" } });
  expect(refused.headers.get("retry-after")).toMatch(/^\d+$/);
  expect((await ask(two)).status).toBe(200);
});

test("the pages are limited per address, and the limit is shown in words", async () => {
  const small = await startApi({ limits: { perAddress: 1 } });
  const get = async () => fetch(`${small.url}/?pid=pay_0`);
  expect((await get()).status).toBe(404);
  const refused = await get();
  expect(refused.status).toBe(429);
  expect(await refused.text()).toContain("Nothing is lost.");
});

test.each([
  ["not found", 404],
  ["too often", 429],
  ["server error", 500],
])("a message page (%s) keeps its query when the buyer chooses a language", async (_what, status) => {
  const small = await startApi(status === 429 ? { limits: { perAddress: 1 } } : {});
  const id = await makePayment(small, await makeMerchant(small));
  if (status === 429) await fetch(`${small.url}/?pid=${id}`);
  if (status === 500) await small.db.schema.alterTable("payment").renameTo("lost").execute();
  const pid = status === 404 ? "pay_0" : id;
  const response = await fetch(`${small.url}/?lang=de&pid=${pid}&theme=dark&returnUrl=myapp%3A%2F%2Fdone`);
  expect(response.status).toBe(status);
  const text = await response.text();
  expect(text).toContain('<html lang="de" dir="ltr" data-theme="dark">');
  expect(text).toContain(`<a href="?pid=${pid}&amp;theme=dark&amp;returnUrl=myapp%3A%2F%2Fdone&amp;lang=ar" lang="ar"`);
});

test("pages and scripts are compressed, and scripts are cached forever under their content hash", async () => {
  const id = await makePayment(api, merchant);
  const response = await fetch(`${api.url}/?pid=${id}`, { headers: { "accept-encoding": "identity" } });
  expect(response.headers.get("content-encoding")).toBeNull();
  expect(response.headers.get("vary")).toBe("accept-language, accept-encoding");
  const text = await response.text();
  const [, src] = /src="([^"]+)" integrity="sha256-/.exec(text) ?? [];
  const script = await fetch(`${api.url}${src}`, { headers: { "accept-encoding": "identity" } });
  expect(script.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  expect(script.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  const packed = await fetch(`${api.url}${src}`, { headers: { "accept-encoding": "gzip, deflate, br, zstd" } });
  expect(packed.headers.get("content-encoding")).toBe("br");
  expect((await fetch(`${api.url}/assets/checkout.0000000000000000.js`)).status).toBe(404);
});

test.each([
  ["gzip, deflate, br, zstd", "zstd", zstdDecompressSync],
  ["gzip, deflate, br", "br", brotliDecompressSync],
  ["gzip", "gzip", gunzipSync],
] as const)("a browser that accepts %s gets the whole page as %s", async (accepted, encoding, decode) => {
  const fresh = await startApi();
  const id = await makePayment(fresh, await makeMerchant(fresh));
  await expectWhole(`${fresh.url}/?pid=${id}`, { accepted, encoding, decode });
});

test("a page like many before it is compressed in advance, for browsers that do not prefer another encoding", async () => {
  const [first, second] = [await makePayment(api, merchant), await makePayment(api, merchant)];
  for (let index = 0; index <= 40; index += 1) await open(`/?pid=${first}`);
  const gzip = { encoding: "gzip", decode: gunzipSync } as const;
  await expectWhole(`${api.url}/?pid=${second}`, { accepted: "gzip, deflate, br, zstd", ...gzip });
  await expectWhole(`${api.url}/?pid=${first}`, { accepted: "gzip, deflate, br", ...gzip });
  const zstd = { encoding: "zstd", decode: zstdDecompressSync } as const;
  await expectWhole(`${api.url}/?pid=${second}`, { accepted: "gzip;q=0.5, zstd", ...zstd });
});

type Expected = { accepted: string; encoding: string; decode: (packed: Buffer) => Buffer };

/** Expects the page that a browser gets to be the one that it gets without compression. */
async function expectWhole(url: string, { accepted, encoding, decode }: Expected): Promise<void> {
  const ask = async (accept: string) => {
    // `fetch` would decode the body.
    const { headers, body } = await request(url, { headers: { "accept-encoding": accept, "accept-language": "en" } });
    return { headers, bytes: Buffer.from(await body.arrayBuffer()) };
  };
  const { headers, bytes } = await ask(accepted);
  expect(headers["content-encoding"]).toBe(encoding);
  expect(headers["vary"]).toBe("accept-language, accept-encoding");
  const text = decode(bytes).toString();
  expect(text).toMatch(/^<!doctype html>.*<\/html>$/s);
  const plain = await ask("identity");
  expect(withoutTimes(text)).toBe(withoutTimes(plain.bytes.toString()));
}

/** Removes what differs between two pages of one payment: the time that is left, and the time in the present state. */
const withoutTimes = (text: string) =>
  text.replace(/"(leftMs|sinceMs)":\d+/g, "").replace(/(<span id="time"[^>]*>)[\d:]+/, "$1");

test("a browser that asks an api of another release for a script is sent to other apis, and is refused after twelve", async () => {
  const first = await fetch(`${api.url}/assets/checkout.0000000000000000.js`, { redirect: "manual" });
  expect(first.status).toBe(307);
  expect(first.headers.get("location")).toBe("checkout.0000000000000000.js?tried=1");
  expect(first.headers.get("cache-control")).toBe("no-store");
  for (const query of ["?tried=12", "?tried=x", "?tried=1&tried=2"])
    expect((await fetch(`${api.url}/assets/checkout.0000000000000000.js${query}`)).status).toBe(404);
  expect((await fetch(`${api.url}/assets/other.js`)).status).toBe(404);
});

test("a server error is shown to a buyer in words, without its cause", async () => {
  const broken = await startApi();
  const id = await makePayment(broken, await makeMerchant(broken));
  await broken.db.schema.alterTable("payment").renameTo("lost").execute();
  const response = await fetch(`${broken.url}/?pid=${id}`);
  expect(response.status).toBe(500);
  expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
  const text = await response.text();
  expect(text).toContain("do not pay again");
  expect(text).not.toMatch(/relation|postgres|lost"/i);
});

test("pages are served with the headers and scripts of the release file, which npm run pages:release regenerates", async () => {
  expect(describeRelease()).toEqual(release);
  const id = await makePayment(api, merchant);
  for (const [path, kind] of [
    [`/?pid=${id}`, "checkout"],
    [`/collect/${id}/opt_none/unknown`, "collect"],
  ] as const) {
    const { headers, text } = await open(path);
    for (const [name, value] of Object.entries(release.headers[kind]))
      expect({ name, value: headers.get(name) }).toEqual({
        name,
        value: value.replaceAll("https://{checkout_host}", publicUrl),
      });
    expect(headers.get("strict-transport-security")).toBe("max-age=63072000");
    const { path: script, integrity } = release.scripts[kind];
    expect(text).toContain(`src="${script}" integrity="${integrity}"`);
  }
});
