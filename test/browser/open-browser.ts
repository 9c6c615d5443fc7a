import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { addCleanup } from "../support/cleanups.ts";
import { findChromium } from "./chromium.ts";

let shared: Promise<Browser> | undefined;

/**
 * Returns the browser that the files of this process share, because a launch takes longer than many tests. It ends with the
 * process. Throws when no browser is installed, so that the tests are never skipped.
 */
async function openBrowser(): Promise<Browser> {
  if (shared && !(await shared).isConnected()) shared = undefined;
  shared ??= launch();
  return await shared;
}

/** Launches a browser of the test file, for tests that change the browser itself. Throws as `openBrowser` does. */
export async function launchBrowser(...more: string[]): Promise<Browser> {
  const browser = await launch(...more);
  addCleanup(() => browser.close());
  return browser;
}

async function launch(...more: string[]): Promise<Browser> {
  const { executablePath, env = {} } = await findChromium();
  // Otherwise the browser itself prevents other sites from framing this machine, whatever the page's policy says.
  const asOnTheInternet = "--disable-features=LocalNetworkAccessChecks";
  const args = ["--no-sandbox", "--disable-dev-shm-usage", asOnTheInternet, ...more];
  return await chromium.launch({ executablePath, args, env: { ...process.env, ...env } });
}

/** What a page did that it must not do, as the browser reports it. */
export type PageErrors = { console: string[]; foreign: string[]; reports: string[] };

export type Opened = { page: Page; context: BrowserContext; pageErrors: PageErrors };

export type PageOptions = BrowserContextOptions & {
  /** Whether the test deliberately violates the page's policy. */
  provokes?: boolean;
  /** A browser other than the file's. */
  browser?: Browser;
};

/**
 * Opens a page in a new context, and records the errors and the foreign requests of the page and its popups. The file
 * fails at its end when the policy blocked something, unless the test provokes that.
 */
export async function openPage(
  origin: string,
  { provokes = false, browser, ...options }: PageOptions = {},
): Promise<Opened> {
  const context = await (browser ?? (await openBrowser())).newContext({
    locale: "en-US",
    viewport: { width: 390, height: 844 },
    // The only animation is the sign for waiting. Without a graphics card it takes more processor time than the rest of a page.
    reducedMotion: "reduce",
    ...options,
  });
  const pageErrors: PageErrors = { console: [], foreign: [], reports: [] };
  addCleanup(async () => {
    await context.close();
    if (!provokes && pageErrors.reports.length > 0)
      throw new Error(`the policy blocked: ${[...new Set(pageErrors.reports)].join("; ")}`);
  });
  // Several times as long as on an idle machine, as in vitest.config.ts.
  context.setDefaultTimeout(90_000);
  // A request that failed because the test stopped the server is not an error of the page.
  const isNetwork = (text: string): boolean => /Failed to load resource|net::ERR/.test(text);
  context.on("console", (message) => {
    const text = message.text();
    if (/Content Security Policy|Trusted ?Type|TrustedHTML/i.test(text)) pageErrors.reports.push(text);
    else if (message.type() === "error" && !isNetwork(text)) pageErrors.console.push(text);
  });
  context.on("weberror", (error) => pageErrors.console.push(String(error.error())));
  context.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol.startsWith("http") && url.origin !== origin && request.resourceType() !== "document")
      pageErrors.foreign.push(request.url());
  });
  return { page: await context.newPage(), context, pageErrors };
}

/** No page errors. */
export const none: PageErrors = { console: [], foreign: [], reports: [] };

/** Makes a page abort its long poll and poll its payment again. */
export async function triggerPoll(page: Page): Promise<void> {
  // The page ignores events right after a poll has started.
  await page.waitForTimeout(400);
  await page.evaluate("void dispatchEvent(new Event('focus'))");
}
