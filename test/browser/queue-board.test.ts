import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { computeTotp, totpStep } from "../../payments/operators/totp.ts";
import { addCleanup } from "../support/cleanups.ts";
import { openConsole } from "../support/open-console.ts";
import { openTestDb } from "../support/open-test-db.ts";
import { redisPrefix } from "../support/redis-prefix.ts";
import { waitFor } from "../support/wait-for.ts";
import { openPage } from "./open-browser.ts";

test("the board shows no button whose request is refused, and links a failed job to its page on the console", async () => {
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
  await waitFor(async () => (await queue.getFailedCount()) === 1, { within: 10_000 });
  await worker.close();
  const now = () => new Date();
  const { board, people } = await openConsole({ db, databaseUrl, deps: { now } }, { queues: [queue] });
  const url = await board.listen({ host: "127.0.0.1", port: 0 });

  const { page } = await openPage(url, { viewport: { width: 1280, height: 900 } });
  await page.goto(url);
  await page.getByLabel("Name").fill("olga");
  await page.getByLabel("Password").fill(people.olga.password);
  await page.getByLabel("Code").fill(computeTotp(people.olga.secret, totpStep(now())));
  await page.getByRole("button", { name: "Log in" }).click();
  await page.goto(`${url}/queue/settle?status=failed`);
  const link = page.getByRole("link", { name: "Payments, error, retry" });
  await link.first().waitFor();
  const names = await page
    .getByRole("button")
    .evaluateAll((all) => all.map((one) => one.getAttribute("aria-label") ?? one.title ?? one.textContent));
  const labels = [...names, ...(await page.getByRole("button").allTextContents())].join(" | ");
  expect(labels).not.toMatch(/retry|clean|promote|pause|resume|obliterate|empty|add job|edit|remove|delete/i);
  expect(await link.first().getAttribute("href")).toBe("/console/jobs/settle/settle-1-0");
});
