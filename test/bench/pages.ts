import { availableParallelism, loadavg } from "node:os";
import { openDb } from "../../db/open.ts";
import type { Say } from "../../ops/local/service.ts";
import type { StackFile } from "../../ops/local/stack-file.ts";
import { createPayment, listOptions, type Shop } from "../../ops/local/wallet.ts";
import { addPolicy, removePolicy } from "../../payments/policies.ts";
import { type Look, makePayment, type Tills } from "../browser/look.ts";
import { makeLooks } from "../browser/looks.ts";
import { endAll } from "../support/at-end.ts";
import { lookAt } from "./page-looks.ts";
import { timeAnswers, timeChange } from "./page-response.ts";
import { measureSpeed, RUNS } from "./page-speed.ts";
import { type Weight, weigh } from "./page-weight.ts";
import { printTable } from "./stats.ts";

type Args = { pictures: string | undefined; say: Say };

/** A row of the result: what, and whether it is within the bar of the pages. */
type Row = { what: string; value: number; bar: number; unit?: string; digits?: number; note?: string };

/**
 * The bar of the pages: what they weigh, how soon a slow phone shows them and answers a finger, what jumps, and what axe
 * finds wrong with any look there is. With `pictures` each look is written down as a PNG, in light and dark. Throws when
 * something is over the bar.
 */
export async function benchPages(stack: StackFile, { pictures, say }: Args): Promise<void> {
  const tills = openStackTills(stack);
  const rows: Row[] = [];
  try {
    // Payments live for five minutes: each part has its own.
    rows.push(...(await rateWeight(stack.baseUrl, await makeLooks(tills), say)));
    rows.push(...(await rateSpeed(stack.baseUrl, await makeLasting(tills), say)));
    const answers = await timeAnswers(stack.baseUrl, findIn(await makeLooks(tills)), say);
    rows.push({
      what: "interaction to next paint, the slowest",
      value: Math.max(...answers.values()),
      bar: 100,
      unit: "ms",
    });
    rows.push({ what: "change of state to screen", value: await timeChange(tills.shop), bar: 300, unit: "ms" });
    const looks = await makeLooks(tills);
    const violations = await lookAt(stack.baseUrl, looks, { pictures, say });
    rows.push({ what: `axe violations, ${looks.length} looks`, value: violations, bar: 0, note: "light and dark" });
  } finally {
    await endAll();
  }
  printTable(rows.map(writeRow));
  const over = rows.filter(({ value, bar }) => value > bar).map(({ what }) => what);
  if (over.length > 0) throw new Error(`over the bar: ${over.join(", ")}`);
}

/** Takes the pictures alone, without measuring anything but what axe finds wrong. */
export async function picturePages(stack: StackFile, args: { pictures: string; say: Say }): Promise<void> {
  try {
    const violations = await lookAt(stack.baseUrl, await makeLooks(openStackTills(stack)), args);
    if (violations > 0) throw new Error(`axe finds ${violations} violations`);
  } finally {
    await endAll();
  }
}

function openStackTills(stack: StackFile): Tills {
  // Buyers have the whole browser; the tests are content with its headless shell.
  process.env.CHROMIUM ??= "/usr/bin/chromium";
  const shop = { baseUrl: stack.baseUrl, caller: stack.test };
  return { shop, live: { ...shop, caller: stack.live }, askWho: () => makeDataPage(stack, shop) };
}

const findIn =
  (looks: readonly Look[]) =>
  (wanted: string): Look => {
    const look = looks.find(({ name }) => name === wanted);
    if (!look) throw new Error(`there is no look ${wanted}`);
    return look;
  };

/** A payment that waits for longer than Lighthouse takes, one at its end, and for comparison the least page there is. */
async function makeLasting(tills: Tills): Promise<Look[]> {
  const find = findIn(await makeLooks(tills));
  const expiresAt = Math.ceil(Date.now() / 1_000) + 3_600;
  const waiting = { ...find("requires_action"), path: `/?pid=${await makePayment(tills.live, { expiresAt })}` };
  return [waiting, find("succeeded"), find("not-found")];
}

const writeRow = ({ what, value, bar, unit = "", digits = 0, note }: Row): [string, string] => [
  what,
  `${value.toFixed(digits)} ${unit} (bar ${bar})${note ? `, ${note}` : ""}`.replace("  ", " "),
];

async function rateWeight(origin: string, looks: readonly Look[], say: Say): Promise<Row[]> {
  const weights: Weight[] = [];
  for (const look of looks.filter(({ before, reach }) => !before && !reach)) {
    const weight = await weigh(origin, look);
    say(`${look.name}: ${weight.bytes} bytes, script ${weight.script}, ${weight.requests} requests`);
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

async function rateSpeed(origin: string, looks: readonly Look[], say: Say): Promise<Row[]> {
  const speeds = await measureSpeed(origin, looks);
  const [load = 0] = loadavg();
  say(
    `the machine while Lighthouse looked: ${availableParallelism()} cores, ${load.toFixed(1)} processes that want one`,
  );
  const list = (values: readonly number[]): string => values.map((one) => one.toFixed(0)).join(" ");
  return speeds.flatMap(({ lcp, tbt, ttfb }, index) => {
    const name = looks[index]?.name;
    say(`${name}: LCP ${list(lcp.all)} ms, blocked ${list(tbt.all)} ms, server ${list(ttfb.all)} ms`);
    const note = `median of ${RUNS}: ${list(lcp.all)}`;
    return [
      { what: `largest paint, ${name}`, value: lcp.median, bar: 1_000, unit: "ms", note },
      { what: `blocking time, ${name}`, value: tbt.median, bar: 0, unit: "ms", note: list(tbt.all) },
    ];
  });
}

/** The path of a data page: the shop has to know who pays while the option is made, and no longer. */
async function makeDataPage(stack: StackFile, shop: Shop): Promise<string> {
  const db = openDb(stack.postgresUrl, { max: 1, applicationName: "pay-bench" });
  const policy = { merchantId: shop.caller.merchantId, asset: null, unit: null, minimum: null };
  const { id: policyId } = await addPolicy({ db, now: () => new Date() }, policy);
  const id = await createPayment(shop, { referenceId: "order-17", cents: "1250" });
  const [buyer] = stack.evm.buyers;
  const [option] = await listOptions(shop, id, [`${stack.evm.chain}:${buyer?.address}`]);
  await removePolicy({ db }, policyId);
  await db.destroy();
  return `/collect/${id}/${option?.id}/${"w".repeat(22)}`;
}
