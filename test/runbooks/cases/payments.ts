import { writeFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { ask } from "../../../local/buyer-client.ts";
import { usdcAbi } from "../../../local/circle-artifacts.ts";
import { beginOnEvm, pauseQueue, shopOf, waitForRow, waitForSuccess } from "../bed-actions.ts";
import type { RunbookCase } from "../runbook-case.ts";

/** Runbooks about payments and the buyers' pages. */
export const paymentCases: readonly RunbookCase[] = [
  {
    runbook: "payment-error-budget",
    alert: "NoPaymentSucceeds",
    what: "the queue relay-transfers is paused while seven payments are accepted; none has succeeded before",
    // Payments are overdue after more than a minute.
    withinMs: 180_000,
    shows: /"state":"ready"/,
    async inject(bed) {
      const resume = await pauseQueue(bed, "relay-transfers");
      for (let count = 0; count < 8; count += 1) {
        await beginOnEvm(bed);
        await pause(2_000);
      }
      return { end: resume };
    },
  },
  {
    runbook: "payments-held",
    alert: "PaymentsHeld",
    what: "the token's issuer blocks a buyer after the confirm",
    shows: /blacklisted/,
    async inject(bed) {
      const { client, contracts } = bed.stack.chain;
      const resume = await pauseQueue(bed, "relay-transfers");
      const { id, buyer } = await beginOnEvm(bed);
      await waitForRow(bed, `select id from transfer where payment_id = '${id}' and state = 'ready'`);
      const call = (functionName: "blacklist" | "unBlacklist") =>
        client.writeContract({ address: contracts.token, abi: usdcAbi, functionName, args: [buyer.address] } as never);
      await call("blacklist");
      await resume();
      return { end: () => call("unBlacklist"), result: () => waitForSuccess(bed, id) };
    },
  },
  {
    runbook: "screening-down",
    alert: "ScreeningDown",
    what: "the screening list has a line that is not an account",
    async inject(bed) {
      await writeFile(bed.screeningList, "not an account\n");
      await pause(3_000);
      const { id } = await beginOnEvm(bed);
      return { end: () => writeFile(bed.screeningList, ""), result: () => waitForSuccess(bed, id) };
    },
  },
  {
    runbook: "ingress-errors",
    alert: "IngressErrorBudgetBurnFast",
    what: "Postgres is stopped while merchants send requests",
    brief: 'sum(increase(pay_http_requests_total{status=~"5.."}[30s])) > 0',
    async inject(bed) {
      const ask40 = () =>
        Promise.all(Array.from({ length: 40 }, () => ask(shopOf(bed), "GET", "/v1/payments").catch(() => undefined)));
      await ask40();
      await pause(4_000);
      await bed.stack.postgres.stop();
      // A rate counts from the first value that was scraped.
      for (let round = 0; round < 3; round += 1) {
        await ask40();
        await pause(4_000);
      }
      await bed.stack.postgres.start();
      return {};
    },
  },
  {
    runbook: "checkout-page-changed",
    alert: "CheckoutPageChanged",
    what: "a proxy in front of the api leaves out a header",
    brief: "pay:page_differences:max > 0",
    withinMs: 240_000,
    endsWithinMs: 240_000,
    async inject(bed) {
      bed.pages.alter((_path, answer) => {
        const { "content-security-policy": _, ...headers } = answer.headers;
        return { ...answer, headers };
      });
      return { end: async () => bed.pages.alter(undefined) };
    },
  },
];
