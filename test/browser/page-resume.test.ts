import { setTimeout as pause } from "node:timers/promises";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { createPayment, pay as payAsWallet } from "../../local/buyer-client.ts";
import { fundBuyer, mine, startChain, transfersTo } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { inRealTime } from "../support/in-real-time.ts";
import { startLoadBalancer } from "../support/load-balancer.ts";
import { waitFor } from "../support/wait-for.ts";
import { moveToState, openShop } from "./browser-shop.ts";
import { launchBrowser, openPage, triggerPoll } from "./open-browser.ts";
import { states } from "./payment-state-names.ts";
import { updateDelayMs, watchText } from "./watch-text.ts";

// The tests mostly wait, so they run concurrently, each with its own page.
const { api, pay, linkOf } = await openShop();
const balancer = await startLoadBalancer();
const chain = await startChain();
const suspended = await launchBrowser();
const fleet = await startFleet({ chain, apis: 2, workers: 1, env: { PUBLIC_URL: balancer.url } });
balancer.to(() => fleet.apis.filter((one) => !one.isGone()).map(({ url }) => url));

/** Longer than a long poll of the page lasts. */
const LONG_MS = 36_000;
const waiting = "Pay $5.00 to Shop";
const going = "Your payment is on its way";

// Pages are opened one at a time: opening is the expensive part.
let last: Promise<unknown> = Promise.resolve();
function open(options: Parameters<typeof openPage>[1] = {}) {
  const opening = last.then(() => openOne(options));
  last = opening.catch(() => undefined);
  return opening;
}

async function openOne(options: Parameters<typeof openPage>[1]) {
  const id = await pay({ checkout: undefined });
  const { page, context } = await openPage(api.url, options);
  const words = await watchText(page);
  await page.goto(linkOf(id));
  return { id, page, context, words };
}

const heading = (page: Page, name: string) => page.getByRole("heading", { name, level: 1 });
/** Checks the delay that a returning buyer sees, by the page's own clock: the test process may be slow itself. */
async function expectSoonPaid(page: Page): Promise<void> {
  await heading(page, "Paid").waitFor();
  // Two seconds at most on an idle machine.
  expect(await updateDelayMs(page)).toBeLessThan(8_000);
}

test.concurrent(
  "a browser that was suspended, as on phones, shows the current state soon after it resumes",
  inRealTime,
  async () => {
    const pages = await Promise.all([open({ browser: suspended }), open({ browser: suspended })]);
    const session = await suspended.newBrowserCDPSession();
    const { processInfo } = await session.send("SystemInfo.getProcessInfo");
    const signal = (name: NodeJS.Signals): void => {
      for (const { id } of processInfo) {
        try {
          process.kill(id, name);
        } catch (error) {
          // The browser may have ended one of its processes meanwhile.
          if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
        }
      }
    };
    signal("SIGSTOP");
    try {
      await moveToState(api, pages[0].id, "succeeded");
      await pause(LONG_MS);
      // By now the server has answered the long poll without a change, and the suspended page could not read it.
      await moveToState(api, pages[1].id, "succeeded");
    } finally {
      signal("SIGCONT");
    }
    await Promise.all(pages.map(({ page }) => expectSoonPaid(page)));
    expect(pages.map(({ words }) => words)).toEqual([
      [waiting, "Paid"],
      [waiting, "Paid"],
    ]);
  },
);

test.concurrent("every event of a return aborts the open poll, which may be dead, and polls at once", async () => {
  const { page } = await open();
  const polls: number[] = [];
  let givenUp = 0;
  page.on("requestfailed", (request) => {
    if (request.url().includes("/status")) givenUp += 1;
  });
  // From now on no poll is answered.
  await page.route("**/status?*", () => void polls.push(performance.now()));
  await triggerPoll(page);
  await waitFor(() => polls.length === 1 && givenUp === 1, { within: 20_000 });
  const dispatch = (place: "document" | "window", event: string, visibilityState = "visible"): Promise<void> =>
    page.evaluate(
      ([to, name, state]) => {
        Object.defineProperty(document, "visibilityState", { get: () => state, configurable: true });
        (to === "window" ? window : document).dispatchEvent(new Event(name as string));
      },
      [place, event, visibilityState],
    );
  for (const [place, event] of [
    ["document", "visibilitychange"],
    ["document", "resume"],
    ["window", "pageshow"],
    ["window", "focus"],
    ["window", "online"],
  ] as const) {
    const before = { event, polls: polls.length, givenUp };
    await page.waitForTimeout(500);
    if (event === "visibilitychange") await dispatch(place, event, "hidden");
    expect({ event, polls: polls.length, givenUp }).toEqual(before);
    await dispatch(place, event);
    const hasPolledOnce = () => polls.length === before.polls + 1 && givenUp === before.givenUp + 1;
    await waitFor(hasPolledOnce, { within: 20_000, what: `a question after ${event}` });
  }
});

test.concurrent(
  "a return right after a failed poll polls at once instead of waiting for the next retry",
  inRealTime,
  async () => {
    const { page } = await open();
    // Counted from the return, which a busy machine may delay until shortly before the next retry.
    const msAfterReturn = page.evaluate(
      () =>
        new Promise<number>((resolve) => {
          let returnedAt: number | undefined;
          window.fetch = async () => {
            if (returnedAt !== undefined) resolve(performance.now() - returnedAt);
            const comeBack = () => {
              returnedAt = performance.now();
              dispatchEvent(new Event("online"));
            };
            setTimeout(comeBack, 50);
            throw new TypeError("there is no network");
          };
        }),
    );
    await triggerPoll(page);
    expect(await msAfterReturn).toBeLessThan(400);
  },
);

test.concurrent(
  "the page keeps its state while it is offline for 30 s, and shows the current state soon after it is online again",
  inRealTime,
  async () => {
    const { id, page, context, words } = await open();
    await context.setOffline(true);
    await triggerPoll(page);
    await moveToState(api, id, "succeeded");
    await pause(30_000);
    expect(words).toEqual([waiting]);
    await context.setOffline(false);
    await expectSoonPaid(page);
    expect(words).toEqual([waiting, "Paid"]);
  },
);

test.concurrent(
  "error responses for 20 s change nothing on the page, which shows the current state afterwards",
  inRealTime,
  async () => {
    const { id, page, words } = await open();
    let polls = 0;
    let isDown = true;
    await page.route("**/status?*", (route) => {
      if (!isDown) return route.continue();
      polls += 1;
      const status = [500, 502, 503, 429][polls % 4] as number;
      return route.fulfill({ status, contentType: "application/json", body: `{"code":"internal_error","message":""}` });
    });
    // The server itself answers the current poll; the next polls fail.
    const startedAt = performance.now();
    await triggerPoll(page);
    await moveToState(api, id, "succeeded");
    await pause(20_000);
    await waitFor(() => polls > 4, { within: 20_000, what: "the page continues to poll" });
    // At a bounded rate: the page pauses for 700 ms at least.
    expect(polls).toBeLessThan(3 + (performance.now() - startedAt) / 700);
    expect(words).toEqual([waiting]);
    isDown = false;
    await expectSoonPaid(page);
    expect(words).toEqual([waiting, "Paid"]);
  },
);

test.concurrent("a tab that the browser discarded shows the current state as soon as it is loaded again", async () => {
  const { id, page, context } = await open();
  const session = await context.newCDPSession(page);
  const crashed = page.waitForEvent("crash");
  session.send("Page.crash").catch(() => undefined);
  await crashed;
  await moveToState(api, id, "succeeded");
  await session.send("Page.reload");
  const read = async (expression: string): Promise<unknown> =>
    (await session.send("Runtime.evaluate", { expression })).result.value;
  const title = "document.querySelector('h1:not([hidden] *)')?.textContent";
  await waitFor(async () => (await read(title)) === "Paid", { within: 20_000 });
  // Since the page arrived: a busy machine takes seconds to start the tab's new process.
  const arrivedAt = "performance.getEntriesByType('navigation')[0].responseEnd";
  expect(await read(`times.changedAt - ${arrivedAt}`)).toBeLessThan(20_000);
});

test.concurrent("a reload shows the current state at first paint, in every state", async () => {
  const titles = [waiting, going, "Paid", "The payment failed", "The time is up", "The payment was cancelled"];
  const { page, words } = await open();
  // The page shows only what the server rendered.
  await page.route("**/status?*", () => undefined);
  for (const [index, state] of states.entries()) {
    const id = await pay({ checkout: undefined });
    await page.goto(linkOf(id));
    await waitFor(() => words.at(-1) === waiting, { within: 20_000 });
    await moveToState(api, id, state);
    const before = words.length;
    await page.reload();
    await waitFor(() => words.at(-1) === titles[index], { within: 20_000, what: state });
    expect(words.slice(before)).toEqual(state === "requires_action" ? [] : [titles[index]]);
  }
});

test.concurrent("a second tab and a reload show the same state", async () => {
  const { id, page, context } = await open();
  const second = await context.newPage();
  await second.goto(linkOf(id));
  await moveToState(api, id, "processing");
  for (const tab of [page, second]) await heading(tab, going).waitFor();
  await second.reload();
  expect(await second.locator("h1:visible").textContent()).toBe(going);
  await api.post(`/checkout/${id}/simulate`, {}, { status: "succeeded" });
  await heading(page, "Paid").waitFor();
});

test.concurrent("the page ignores responses that are older than the shown state, and does not poll in a tight loop", async () => {
  const { id, page, words } = await open();
  const old = await (await fetch(`${api.url}/checkout/${id}/status`)).text();
  // A state that is not final: after one that is, the page polls no more.
  await moveToState(api, id, "processing");
  await heading(page, going).waitFor();
  let polls = 0;
  await page.route("**/status?*", (route) => {
    polls += 1;
    return route.fulfill({ contentType: "application/json", body: old });
  });
  const startedAt = performance.now();
  await triggerPoll(page);
  await waitFor(() => polls > 3, { within: 20_000, what: "polls after the old response" });
  // The page pauses for 700 ms at least.
  expect(polls).toBeLessThan(3 + (performance.now() - startedAt) / 700);
  expect(words).toEqual([waiting, going]);
});

test.concurrent("the page ignores a truncated response", async () => {
  const { id, page, words } = await open();
  let cut = 0;
  let isCut = true;
  await page.route("**/status?*", async (route) => {
    if (!isCut) return await route.continue();
    cut += 1;
    await route.fulfill({ contentType: "application/json", body: '{"status":"pro' });
  });
  await triggerPoll(page);
  await waitFor(() => cut > 1, { within: 20_000 });
  expect(words).toEqual([waiting]);
  isCut = false;
  await moveToState(api, id, "succeeded");
  await heading(page, "Paid").waitFor();
});

test.concurrent("the page polls a draining server once a second, and not in a tight loop", async () => {
  const { page } = await open();
  let polls = 0;
  await page.route("**/status?*", async (route) => {
    polls += 1;
    const url = new URL(route.request().url());
    url.searchParams.set("maxPollMs", "0");
    await route.fulfill({ response: await route.fetch({ url: url.href }) });
  });
  const startedAt = performance.now();
  await triggerPoll(page);
  await pause(4_000);
  await waitFor(() => polls > 1, { within: 20_000, what: "the page polls again" });
  const counted = { polls, elapsedMs: performance.now() - startedAt };
  // A forwarded poll that is still open when the page closes would fail after the test.
  await page.unrouteAll({ behavior: "wait" });
  // The page pauses for 700 ms at least.
  expect(counted.polls).toBeLessThan(3 + counted.elapsedMs / 700);
});

test.concurrent("the page shows no wrong text and loses nothing while every api is killed, in turn and at once", async () => {
  const shop = { ...fleet.shop, baseUrl: balancer.url };
  const id = await createPayment(shop, { referenceId: "order", cents: "1250" });
  const { page } = await openPage(balancer.url);
  const words = await watchText(page);
  await page.goto(`${balancer.url}/?pid=${id}`);
  const buyer = await fundBuyer(chain);
  for (const one of fleet.apis.slice()) {
    await one.kill("SIGKILL");
    await pause(2_000);
    await fleet.addApi();
  }
  expect(fleet.apis.map((one) => one.isGone())).toEqual([true, true, false, false]);
  // The chain mines no block, so the payment stays in processing while the apis are down.
  await chain.client.setAutomine(false);
  await payAsWallet(shop, id, buyer, chain.id);
  await heading(page, going).waitFor();
  await Promise.all(fleet.apis.map((one) => one.kill("SIGKILL")));
  await pause(3_000);
  expect(words).toEqual(["Pay $12.50 to Corner shop", going]);
  await Promise.all([fleet.addApi(), fleet.addApi()]);
  await chain.client.setAutomine(true);
  await mine(chain);
  await heading(page, "Paid").waitFor();
  expect(words).toEqual(["Pay $12.50 to Corner shop", going, "Paid"]);
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
});
