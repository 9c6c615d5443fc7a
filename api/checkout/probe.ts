import { createHash } from "node:crypto";
import type { Outward, OutwardAnswer } from "../../ops/outward.ts";
import type release from "./release.json";

/** What a release serves, as `release.json` has it. */
export type Release = typeof release;
export type PageName = keyof Release["scripts"];
/** What one look at a page has given: what differs from the release, each in words; or why it could not be looked at. */
export type PageLook = { page: PageName; differences: string[] } | { page: PageName; notLooked: string };

type Place = {
  /** Where buyers reach the deployment. */
  publicUrl: string;
  /** A payment that the deployment knows: only the checkout page of such a one names its script. */
  paymentId?: string | undefined;
};
type Deps = { ask: Outward; release: Release };

const WITHIN_MS = 10_000;
/** More than any page or script of ours, bytes. */
const MOST_BYTES = 1_000_000;
/** Nobody has this one, so no account says who may frame its data page. */
const NO_PAYMENT = `pay_${"0".repeat(32)}`;
/** So much of what a deployment has said is repeated. */
const SHOWN = 200;

/**
 * Fetches a deployment's checkout page, data page and their scripts as a browser would, and compares headers, script,
 * integrity and bytes with the release. Headers that a proxy adds are fine; missing or other values are not. A
 * deployment that is away, in trouble or refuses (any status but 2xx, 3xx and the 404 of what is not there) is not
 * looked at, which is no difference. Never throws.
 */
export async function lookAtPages(deps: Deps, { publicUrl, paymentId }: Place): Promise<PageLook[]> {
  const base = publicUrl.replace(/\/+$/, "");
  const checkout = paymentId
    ? { path: `/?pid=${paymentId}`, status: 200 }
    : { path: `/?pid=${NO_PAYMENT}`, status: 404 };
  const collect = { path: `/collect/${NO_PAYMENT}/opt_none/nobody`, status: 404 };
  // One after the other: a name that is not found in time keeps a thread that others wait for.
  return [
    await lookAt(deps, base, { page: "checkout", ...checkout, bare: !paymentId }),
    await lookAt(deps, base, { page: "collect", ...collect, bare: false }),
  ];
}

/** `bare`: the page is one without a script. */
type Wanted = { page: PageName; path: string; status: number; bare: boolean };

async function lookAt(deps: Deps, base: string, { page, path, status, bare }: Wanted): Promise<PageLook> {
  const script = deps.release.scripts[page];
  const html = await fetchFrom(deps, base + path);
  if (!html.ok && !html.isMisfit) return { page, notLooked: `the page ${html.reason}` };
  if (html.ok && html.status !== status)
    return { page, notLooked: `the page answers ${html.status}, expected ${status}` };
  const src = new URL(base).pathname.replace(/\/$/, "") + script.path;
  const ofPage = html.ok
    ? [
        ...compareHeaders(deps.release.headers[page], base, html.headers),
        ...compareScript({ ...script, path: src }, html.body, bare),
      ]
    : [`the page ${html.reason}`];
  const code = await fetchFrom(deps, base + script.path);
  const isAway = !code.ok && !code.isMisfit;
  // What is known to differ is told, whatever becomes of the rest.
  if (isAway && ofPage.length === 0) return { page, notLooked: `its script ${code.reason}` };
  const ofScript = code.ok ? compareBytes(script, code) : [`the script ${script.path} ${code.reason}`];
  return { page, differences: [...ofPage, ...ofScript] };
}

type Fetched = Extract<OutwardAnswer, { ok: true }> | { ok: false; isMisfit: boolean; reason: string };

/** A deployment that leads elsewhere or sends what cannot be ours has changed; one that gives no answer is away. */
async function fetchFrom({ ask }: Deps, url: string): Promise<Fetched> {
  const how = { timeoutMs: WITHIN_MS, maxBytes: MOST_BYTES, redirects: 0 };
  const answer = await ask({ method: "GET", url, ...how });
  if (!answer.ok) return { ok: false, isMisfit: answer.fault === "unfit", reason: answer.reason };
  const { status, headers } = answer;
  if (status >= 300 && status < 400)
    return { ok: false, isMisfit: true, reason: `leads to ${shorten(String(headers.location ?? "nowhere"))}` };
  if (status < 300 || status === 404) return answer;
  return { ok: false, isMisfit: false, reason: `answers ${status}` };
}

function compareHeaders(
  wanted: Record<string, string>,
  publicUrl: string,
  served: Extract<Fetched, { ok: true }>["headers"],
): string[] {
  return Object.entries(wanted).flatMap(([name, template]) => {
    const value = template.replaceAll("https://{checkout_host}", publicUrl);
    const has = served[name]?.toString();
    if (has === undefined) return [`the header ${name} is missing`];
    // A proxy that packs answers adds to the list.
    const isSame = name === "vary" ? listOf(value).isSubsetOf(listOf(has)) : has === value;
    return isSame ? [] : [`the header ${name} is "${shorten(has)}", expected "${shorten(value)}"`];
  });
}

const listOf = (value: string) => new Set(value.toLowerCase().split(/\s*,\s*/));

/** The page may run one script, by its name and its hash; what it tells the script is data. */
function compareScript(
  { path, integrity }: { path: string; integrity: string },
  body: Buffer,
  bare: boolean,
): string[] {
  const tags = [...body.toString("utf8").matchAll(/<script\b([^>]*)/gi)].map(([, attributes = ""]) => attributes);
  const scripts = tags.filter((tag) => readAttribute(tag, "type") !== "application/json");
  const ours = scripts.filter((tag) => readAttribute(tag, "src") === path);
  const others = scripts.filter((tag) => !ours.includes(tag)).map((tag) => readAttribute(tag, "src"));
  return [
    ...others.map((src) => `a script of no release: ${src === undefined ? "written into the page" : shorten(src)}`),
    ...(ours.length === 0 && !bare ? [`the script ${path} is missing`] : []),
    ...ours.flatMap((tag) => {
      const has = readAttribute(tag, "integrity");
      if (has === integrity) return [];
      return [`the integrity of ${path} is ${has === undefined ? "missing" : shorten(has)}, expected ${integrity}`];
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
  if (status === 404) return [`the script ${path} is not there`];
  const hash = `sha256-${createHash("sha256").update(body).digest("base64")}`;
  return hash === integrity ? [] : [`the script ${path} has the bytes of ${hash}, expected ${integrity}`];
}

const shorten = (text: string): string => (text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);
