import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { atEnd } from "../support/at-end.ts";
import { findChromium } from "./chromium.ts";

let launched: Promise<Browser> | undefined;

/** A browser for the file. Throws one sentence where there is none: a page that nobody has looked at is not tested. */
export function openBrowser(): Promise<Browser> {
  if (!launched) {
    launched = launchBrowser();
    atEnd(() => {
      launched = undefined;
    });
  }
  return launched;
}

/** A browser more, for who does something to the browser itself. Throws as `openBrowser` does. */
export async function launchBrowser(...more: string[]): Promise<Browser> {
  const { executablePath, env = {} } = await findChromium();
  // Otherwise it keeps other sites from framing this machine by itself, whatever the page itself says of framing.
  const asOnTheInternet = "--disable-features=LocalNetworkAccessChecks";
  const args = ["--no-sandbox", "--disable-dev-shm-usage", asOnTheInternet, ...more];
  const browser = await chromium.launch({ executablePath, args, env: { ...process.env, ...env } });
  atEnd(() => browser.close());
  return browser;
}

/** What a page did that it must not do: told by the browser itself. */
export type Misdeeds = { console: string[]; foreign: string[]; reports: string[] };

export type Opened = { page: Page; context: BrowserContext; misdeeds: Misdeeds };

export type PageOptions = BrowserContextOptions & {
  /** The test itself has the browser complain of what our policy forbids. */
  provokes?: boolean;
  /** Another browser than the file's. */
  browser?: Browser;
};

/**
 * A page of a context of its own; everything it, and whatever opens beside it, asks for and complains of is written
 * down. The file fails at its end where our policy had to keep a page from something, unless its test provokes that.
 */
export async function openPage(
  origin: string,
  { provokes = false, browser, ...options }: PageOptions = {},
): Promise<Opened> {
  const context = await (browser ?? (await openBrowser())).newContext({
    locale: "en-US",
    viewport: { width: 390, height: 844 },
    ...options,
  });
  const misdeeds: Misdeeds = { console: [], foreign: [], reports: [] };
  atEnd(async () => {
    await context.close();
    if (!provokes && misdeeds.reports.length > 0)
      throw new Error(`a page had to be kept from something: ${[...new Set(misdeeds.reports)].join("; ")}`);
  });
  context.setDefaultTimeout(10_000);
  // A request that failed because we took the server away is no fault of the page.
  const isNetwork = (text: string): boolean => /Failed to load resource|net::ERR/.test(text);
  context.on("console", (message) => {
    const text = message.text();
    if (/Content Security Policy|Trusted ?Type|TrustedHTML/i.test(text)) misdeeds.reports.push(text);
    else if (message.type() === "error" && !isNetwork(text)) misdeeds.console.push(text);
  });
  context.on("weberror", (error) => misdeeds.console.push(String(error.error())));
  context.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol.startsWith("http") && url.origin !== origin && request.resourceType() !== "document")
      misdeeds.foreign.push(request.url());
  });
  return { page: await context.newPage(), context, misdeeds };
}

/** Nothing that `misdeeds` are. */
export const none: Misdeeds = { console: [], foreign: [], reports: [] };

/** Makes a page ask anew where its payment stands: what it was waiting for is given up. */
export async function askAnew(page: Page): Promise<void> {
  // Events right after a question belong to it.
  await page.waitForTimeout(400);
  await page.evaluate("void dispatchEvent(new Event('focus'))");
}
