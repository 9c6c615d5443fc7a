import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { computeTotp, totpStep } from "../../payments/operators/totp.ts";
import { addCleanup } from "../support/cleanups.ts";
import { openConsole } from "../support/open-console.ts";
import { openTestDb } from "../support/open-test-db.ts";
import { redisPrefix } from "../support/redis-prefix.ts";
import { waitFor } from "../support/wait-for.ts";
import { findViolations } from "./axe-violations.ts";
import { findMarkupErrors } from "./markup-errors.ts";
import { openPage } from "./open-browser.ts";

test("the board shows no button whose request is refused, and links a failed job to its page, where it is run again", async () => {
  const { db, url: databaseUrl } = await openTestDb(4);
  const { url: redisUrl, prefix } = redisPrefix();
  const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
  const queue = new Queue("settle", { connection, prefix });
  addCleanup(async () => {
    await queue.close();
    connection.disconnect();
  });
  await queue.add("settle", { settlementIds: ["stl_1"] }, { jobId: "settle-1-0" });
  const worker = new Worker("settle", () => Promise.reject(new Error("the lane is held")), { connection, prefix });
  await waitFor(async () => (await queue.getFailedCount()) === 1, { within: 20_000 });
  await worker.close();
  const now = () => new Date();
  const { board, people } = await openConsole({ db, databaseUrl, deps: { now } }, { queues: [queue] });
  const url = await board.listen({ host: "127.0.0.1", port: 0 });

  const { page, pageErrors } = await openPage(url, { viewport: { width: 1280, height: 900 }, provokes: true });
  await page.goto(url);
  await page.getByLabel("Name").fill("olga");
  await page.getByLabel("Password").fill(people.olga.password);
  await page.getByLabel("Code").fill(computeTotp(people.olga.secret, totpStep(now())));
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL(`${url}/`);
  await page.goto(`${url}/queue/settle?status=failed`);
  const link = page.getByRole("link", { name: "Payments, error, retry" });
  await link.first().waitFor();
  const names = await page
    .getByRole("button")
    .evaluateAll((all) =>
      all.map((one) => one.getAttribute("aria-label") ?? one.getAttribute("title") ?? one.textContent),
    );
  const labels = [...names, ...(await page.getByRole("button").allTextContents())].join(" | ");
  expect(labels).not.toMatch(/retry|clean|promote|pause|resume|obliterate|empty|add job|edit|remove|delete/i);
  expect(await link.first().getAttribute("href")).toBe("/console/jobs/settle/settle-1-0");
  // bull-board's page names a style sheet of Google's fonts, which the policy blocks.
  expect([...new Set(pageErrors.reports.map((text) => /fonts\.googleapis/.test(text)))]).toEqual([true]);
  await page.setViewportSize({ width: 320, height: 800 });
  for (const path of ["/console/jobs", "/console/jobs/settle/settle-1-0"]) {
    const answer = await page.goto(`${url}${path}`);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    const wrongs = [...(await findMarkupErrors(String(await answer?.text()))), ...(await findViolations(page))];
    expect({ path, over, wrongs }).toEqual({ path, over: 0, wrongs: [] });
  }
  await page.getByRole("button", { name: "Retry" }).click();
  await page.waitForURL(`${url}/console/jobs?*`);
  await page.getByText("1 job runs again.").waitFor();
  expect(await queue.getJobState("settle-1-0")).toBe("waiting");
});
