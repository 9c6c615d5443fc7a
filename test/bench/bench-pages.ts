import { availableParallelism, loadavg } from "node:os";
import { openDb } from "../../db/open.ts";
import { createPayment, listOptions, type Shop } from "../../local/buyer-client.ts";
import type { Say } from "../../local/service.ts";
import type { StackFile } from "../../local/stack-file.ts";
import { addPolicy, removePolicy } from "../../payments/buyer-data/collection-policies.ts";
import { makePayment, type View, type ViewMerchants } from "../browser/page-view.ts";
import { makeViews } from "../browser/page-views.ts";
import { runCleanups } from "../support/cleanups.ts";
import { testActor } from "../support/test-actor.ts";
import { printTable } from "./bench-stats.ts";
import { timeChange, timeInteractions } from "./page-response-times.ts";
import { checkViews } from "./page-screenshots.ts";
import { measureSpeed, RUNS } from "./page-speed.ts";
import { measureWeight, type Weight } from "./page-weight.ts";

type Args = { pictures: string | undefined; say: Say };

/** A row of the result: a value and its limit. */
type Row = { what: string; value: number; bar: number; unit?: string; digits?: number; note?: string };

/**
 * Measures the pages against their limits: weight, paint and response times on a slow phone, layout shift, and the axe
 * violations of every view. With `pictures` it saves each view as a PNG, in light and dark. Throws when a value exceeds
 * its limit.
 */
export async function benchPages(stack: StackFile, { pictures, say }: Args): Promise<void> {
  const merchants = openStackMerchants(stack);
  const rows: Row[] = [];
  try {
    // Payments expire after minutes: each part creates its own.
    rows.push(...(await rateWeight(stack.baseUrl, await makeViews(merchants), say)));
    rows.push(...(await rateSpeed(stack.baseUrl, await makeLasting(merchants), say)));
    const answers = await timeInteractions(stack.baseUrl, findIn(await makeViews(merchants)), say);
    rows.push({
      what: "interaction to next paint, the slowest",
      value: Math.max(...answers.values()),
      bar: 100,
      unit: "ms",
    });
    rows.push({ what: "change of state to screen", value: await timeChange(merchants.shop), bar: 300, unit: "ms" });
    const views = await makeViews(merchants);
    const violations = await checkViews(stack.baseUrl, views, { pictures, say });
    rows.push({ what: `axe violations, ${views.length} views`, value: violations, bar: 0, note: "light and dark" });
  } finally {
    await runCleanups();
  }
  printTable(rows.map(writeRow));
  const over = rows.filter(({ value, bar }) => value > bar).map(({ what }) => what);
  if (over.length > 0) throw new Error(`over the limit: ${over.join(", ")}`);
}

/** Saves only the screenshots, and checks every view with axe. */
export async function savePageScreenshots(stack: StackFile, args: { pictures: string; say: Say }): Promise<void> {
  try {
    const violations = await checkViews(stack.baseUrl, await makeViews(openStackMerchants(stack)), args);
    if (violations > 0) throw new Error(`axe found ${violations} violations`);
  } finally {
    await runCleanups();
  }
}

function openStackMerchants(stack: StackFile): ViewMerchants {
  // Measure in a full browser, as buyers have; the tests use the headless shell.
  process.env["CHROMIUM"] ??= "/usr/bin/chromium";
  const shop = { baseUrl: stack.baseUrl, caller: stack.test };
  return { shop, live: { ...shop, caller: stack.live }, makeDataPagePath: () => makeDataPage(stack, shop) };
}

const findIn =
  (views: readonly View[]) =>
  (wanted: string): View => {
    const view = views.find(({ name }) => name === wanted);
    if (!view) throw new Error(`there is no view ${wanted}`);
    return view;
  };

/** Returns the views for Lighthouse: a payment that outlasts the measurement, a finished one, and the smallest page. */
async function makeLasting(merchants: ViewMerchants): Promise<View[]> {
  const find = findIn(await makeViews(merchants));
  const expiresAt = Math.ceil(Date.now() / 1_000) + 3_600;
  const waiting = { ...find("requires_action"), path: `/?pid=${await makePayment(merchants.live, { expiresAt })}` };
  return [waiting, find("succeeded"), find("not-found")];
}

const writeRow = ({ what, value, bar, unit = "", digits = 0, note }: Row): [string, string] => [
  what,
  `${value.toFixed(digits)} ${unit} (limit ${bar})${note ? `, ${note}` : ""}`.replace("  ", " "),
];

async function rateWeight(origin: string, views: readonly View[], say: Say): Promise<Row[]> {
  const weights: Weight[] = [];
  for (const view of views.filter(({ before, reach }) => !before && !reach)) {
    const weight = await measureWeight(origin, view);
    say(`${view.name}: ${weight.bytes} bytes, script ${weight.script}, ${weight.requests} requests`);
    weights.push(weight);
  }
  const worst = (key: "bytes" | "script" | "requests" | "cls"): number => Math.max(...weights.map((one) => one[key]));
  return [
    { what: "bytes on the wire, heaviest page", value: worst("bytes"), bar: 25_000 },
    { what: "of them script", value: worst("script"), bar: 12_000 },
    { what: "requests before the first poll", value: worst("requests"), bar: 3 },
    { what: "layout shift, worst page", value: worst("cls"), bar: 0.02, digits: 4 },
  ];
}

async function rateSpeed(origin: string, views: readonly View[], say: Say): Promise<Row[]> {
  const speeds = await measureSpeed(origin, views);
  const [load = 0] = loadavg();
  say(`machine load during Lighthouse: ${availableParallelism()} cores, ${load.toFixed(1)} runnable processes`);
  const list = (values: readonly number[]): string => values.map((one) => one.toFixed(0)).join(" ");
  return speeds.flatMap(({ lcp, tbt, ttfb }, index) => {
    const name = views[index]?.name;
    say(`${name}: LCP ${list(lcp.all)} ms, blocked ${list(tbt.all)} ms, server ${list(ttfb.all)} ms`);
    const note = `median of ${RUNS}: ${list(lcp.all)}`;
    return [
      { what: `largest paint, ${name}`, value: lcp.median, bar: 1_000, unit: "ms", note },
      { what: `blocking time, ${name}`, value: tbt.median, bar: 0, unit: "ms", note: list(tbt.all) },
    ];
  });
}

/** Returns the path of a data page: the shop requires buyer data only while the option is created. */
async function makeDataPage(stack: StackFile, shop: Shop): Promise<string> {
  const db = openDb(stack.postgresUrl, { max: 1, applicationName: "pay-bench" });
  const policy = { merchantId: shop.caller.merchantId, asset: null, unit: null, minimum: null };
  const deps = { db, now: () => new Date() };
  const { id: policyId } = await addPolicy(deps, { ...policy, actor: testActor });
  const id = await createPayment(shop, { referenceId: "order-17", cents: "1250" });
  const [buyer] = stack.evm.buyers;
  const [option] = await listOptions(shop, id, [`${stack.evm.chain}:${buyer?.address}`]);
  await removePolicy(deps, { actor: testActor, id: policyId });
  await db.destroy();
  return `/collect/${id}/${option?.id}/${"w".repeat(22)}`;
}
