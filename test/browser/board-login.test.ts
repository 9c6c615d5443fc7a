import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { buildBoard } from "../../ops/bull-board/board.ts";
import { computeTotp, totpStep } from "../../payments/operators/totp.ts";
import { describeJob } from "../../queues/describe-job.ts";
import { createLog } from "../../runtime/log.ts";
import { createMetrics } from "../../runtime/metrics.ts";
import { addCleanup } from "../support/cleanups.ts";
import { createOperators } from "../support/create-operators.ts";
import { openTestDb } from "../support/open-test-db.ts";
import { makeClock, testEncryption } from "../support/test-deps.ts";
import { openPage } from "./open-browser.ts";

const { db } = await openTestDb(4);
const clock = makeClock();
const operatorDeps = { db, now: clock.now, ...testEncryption() };
const { olga } = await createOperators(operatorDeps);
const board = await buildBoard({
  ...operatorDeps,
  queues: [],
  describeJob,
  deployment: "test",
  trustedProxies: [],
  recordRetry: async () => undefined,
  log: createLog({ level: "silent", role: "bull-board" }),
  metrics: createMetrics(new Registry(), "bull-board"),
});
addCleanup(() => board.close());
const url = await board.listen({ host: "127.0.0.1", port: 0 });

test("an operator logs in on a page, reaches the board, and logs out again", async () => {
  const { page } = await openPage(url, { provokes: true });
  // A code is accepted once, and a test that fails is repeated.
  clock.advance(30_000);
  await page.goto(url);
  expect(page.url()).toBe(`${url}/login`);
  const fill = async (password: string) => {
    await page.getByLabel("Name").fill("olga");
    await page.getByLabel("Password").fill(password);
    await page.getByLabel("Code").fill(computeTotp(olga.secret, totpStep(clock.now())));
    await page.getByRole("button", { name: "Log in" }).click();
  };
  await fill("wrong");
  await expect.poll(() => page.getByRole("alert").textContent()).toBe("The name, the password or the code is wrong.");
  await fill(olga.password);
  await expect.poll(() => page.url()).toBe(`${url}/`);
  await expect.poll(() => page.title()).toContain("Payment queues");
  expect(await page.evaluate(() => document.cookie)).toBe("");
  await page.goto(`${url}/logout`);
  await page.getByRole("button", { name: "Log out" }).click();
  await expect.poll(() => page.url()).toBe(`${url}/login`);
  await page.goto(url);
  expect(page.url()).toBe(`${url}/login`);
});
