import { createHash } from "node:crypto";
import type { SafeFetch, SafeFetchResult } from "../safe-fetch.ts";
import release from "./release.json" with { type: "json" };

type PageName = keyof typeof release.scripts;
/** Result of the check of one page: the differences from the release as texts, or why the page could not be checked. */
export type PageCheckResult = { page: PageName; differences: string[] } | { page: PageName; notChecked: string };

type Deployment = {
  /** Where buyers reach the deployment. */
  publicUrl: string;
  /** A payment of the deployment: only the checkout page of a known payment names its script. */
  paymentId?: string | undefined;
};
type Deps = { ask: SafeFetch };

const TIMEOUT_MS = 10_000;
/** More than any page or script of a release, bytes. */
const MAX_BYTES = 1_000_000;
/** No payment has this id, so no account's framing origins change the headers of its data page. */
const UNKNOWN_PAYMENT = `pay_${"0".repeat(32)}`;
/** Longest part of a deployment's text that is repeated in a result, characters. */
const MAX_SHOWN = 200;

/**
 * Fetches a deployment's checkout page, data page and their scripts as a browser would, and compares headers, script
 * elements, integrity and bytes with this release. Headers that a proxy adds are ignored; missing headers and other values
 * are differences. A page counts as not checked, and not as different, when the deployment is down or responds with an
 * error (any status but 2xx, 3xx and 404). Never throws.
 */
export async function checkReleasedPages(deps: Deps, { publicUrl, paymentId }: Deployment): Promise<PageCheckResult[]> {
  const base = publicUrl.replace(/\/+$/, "");
  const checkout = paymentId
    ? { path: `/?pid=${paymentId}`, status: 200 }
    : { path: `/?pid=${UNKNOWN_PAYMENT}`, status: 404 };
  const collect = { path: `/collect/${UNKNOWN_PAYMENT}/opt_none/unknown`, status: 404 };
  // In sequence: a slow DNS lookup occupies a thread that other lookups need.
  return [
    await checkPage(deps, base, { page: "checkout", ...checkout, hasScript: Boolean(paymentId) }),
    await checkPage(deps, base, { page: "collect", ...collect, hasScript: true }),
  ];
}

/** `hasScript`: whether the page must name its script. */
type Expected = { page: PageName; path: string; status: number; hasScript: boolean };

async function checkPage(
  deps: Deps,
  base: string,
  { page, path, status, hasScript }: Expected,
): Promise<PageCheckResult> {
  const script = release.scripts[page];
  const html = await fetchFrom(deps, base + path);
  if (!html.ok && !html.isDifference) return { page, notChecked: `the page ${html.reason}` };
  if (html.ok && html.status !== status)
    return { page, notChecked: `the page answers ${html.status}, expected ${status}` };
  const src = new URL(base).pathname.replace(/\/$/, "") + script.path;
  const pageDifferences = html.ok
    ? [
        ...compareHeaders(release.headers[page], base, html.headers),
        ...compareScripts({ ...script, path: src }, html.body, hasScript),
      ]
    : [`the page ${html.reason}`];
  const code = await fetchFrom(deps, base + script.path);
  const isUnchecked = !code.ok && !code.isDifference;
  // A known difference is reported even when the script could not be checked.
  if (isUnchecked && pageDifferences.length === 0) return { page, notChecked: `its script ${code.reason}` };
  const scriptDifferences = code.ok ? compareBytes(script, code) : [`the script ${script.path} ${code.reason}`];
  return { page, differences: [...pageDifferences, ...scriptDifferences] };
}

type Fetched = Extract<SafeFetchResult, { ok: true }> | { ok: false; isDifference: boolean; reason: string };

/**
 * A redirect or an unusable response is a difference; no response or an error status means that nothing was checked.
 */
async function fetchFrom({ ask }: Deps, url: string): Promise<Fetched> {
  const response = await ask({ method: "GET", url, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES, redirects: 0 });
  if (!response.ok) return { ok: false, isDifference: response.error === "unusable", reason: response.reason };
  const { status, headers } = response;
  if (status >= 300 && status < 400)
    return {
      ok: false,
      isDifference: true,
      reason: `redirects to ${shorten(String(headers["location"] ?? "nowhere"))}`,
    };
  if (status < 300 || status === 404) return response;
  return { ok: false, isDifference: false, reason: `answers ${status}` };
}

function compareHeaders(
  expected: Record<string, string>,
  publicUrl: string,
  served: Extract<Fetched, { ok: true }>["headers"],
): string[] {
  return Object.entries(expected).flatMap(([name, template]) => {
    const value = template.replaceAll("https://{checkout_host}", publicUrl);
    const actual = served[name]?.toString();
    if (actual === undefined) return [`the header ${name} is missing`];
    // A proxy that compresses responses adds to the list.
    const isSame = name === "vary" ? listOf(value).isSubsetOf(listOf(actual)) : actual === value;
    return isSame ? [] : [`the header ${name} is "${shorten(actual)}", expected "${shorten(value)}"`];
  });
}

const listOf = (value: string) => new Set(value.toLowerCase().split(/\s*,\s*/));

/** Compares the page's script elements with its one script, by path and integrity. Elements of type JSON are data. */
function compareScripts(
  { path, integrity }: { path: string; integrity: string },
  body: Buffer,
  hasScript: boolean,
): string[] {
  const tags = [...body.toString("utf8").matchAll(/<script\b([^>]*)/gi)].map(([, attributes = ""]) => attributes);
  const scripts = tags.filter((tag) => readAttribute(tag, "type") !== "application/json");
  const released = scripts.filter((tag) => readAttribute(tag, "src") === path);
  const others = scripts.filter((tag) => !released.includes(tag)).map((tag) => readAttribute(tag, "src"));
  return [
    ...others.map((src) => `a script that is not released: ${src === undefined ? "inline" : shorten(src)}`),
    ...(released.length === 0 && hasScript ? [`the script ${path} is missing`] : []),
    ...released.flatMap((tag) => {
      const actual = readAttribute(tag, "integrity");
      if (actual === integrity) return [];
      return [
        `the integrity of ${path} is ${actual === undefined ? "missing" : shorten(actual)}, expected ${integrity}`,
      ];
    }),
  ];
}

function readAttribute(tag: string, name: string): string | undefined {
  return new RegExp(`\\s${name}\\s*=\\s*"([^"]*)"`, "i").exec(tag)?.[1];
}

function compareBytes(
  { path, integrity }: { path: string; integrity: string },
  { status, body }: { status: number; body: Buffer },
): string[] {
  if (status === 404) return [`the script ${path} does not exist`];
  const hash = `sha256-${createHash("sha256").update(body).digest("base64")}`;
  return hash === integrity ? [] : [`the script ${path} has the hash ${hash}, expected ${integrity}`];
}

const shorten = (text: string): string => (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text);
