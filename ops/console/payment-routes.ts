import type { FastifyInstance } from "fastify";
import { listOperatorRequests } from "../../db/queries/operator-requests.ts";
import { findMerchantSummary } from "../../db/queries/payment-search.ts";
import { listPaymentLines } from "../../payments/maintenance/operator-actions.ts";
import { readPaymentReport } from "../../payments/maintenance/payment-report.ts";
import { searchPayments } from "../../payments/maintenance/search-payments.ts";
import { listRefundViews } from "../../payments/payouts/find-refunds.ts";
import { operatorOf } from "../operator-login/session-guard.ts";
import { actionLinks, actionsOfPayment } from "./action-links.ts";
import { readAmountFormatter } from "./amount-formatter.ts";
import type { ConsoleDeps } from "./console-deps.ts";
import { sendPage } from "./console-page.ts";
import { MOST_PAYMENTS, merchantPage } from "./merchant-page.ts";
import { paymentPage } from "./payment-page.ts";
import { MOST_FOUND, searchPage, slowSearchPage } from "./search-page.ts";
import { sendMessage } from "./send-message.ts";
import { isStopped } from "./stopped-statement.ts";

/** Most refunds of one payment that its page lists. */
const MOST_REFUNDS = 200;
/** Most requests of operators that a page lists. */
const MOST_REQUESTS = 50;

type ById = { Params: { id: string } };

/** Serves the search, and the pages of payments and merchants. */
export function servePaymentPages(app: FastifyInstance, deps: ConsoleDeps): void {
  app.get<{ Querystring: { q?: unknown } }>("/console", async (request, reply) => {
    const given = request.query.q;
    const text = typeof given === "string" ? given : "";
    try {
      const found = text.trim() === "" ? undefined : await searchPayments(deps, text, MOST_FOUND);
      const [only, ...others] = found?.payments ?? [];
      if (only && others.length + (found?.merchants.length ?? 0) === 0)
        return reply.redirect(`/console/payments/${only.id}`, 303);
      return sendPage(
        reply,
        operatorOf(request),
        searchPage(text, found && { amounts: await readAmountFormatter(deps), results: found }),
      );
    } catch (error) {
      if (!isStopped(error)) throw error;
      return sendPage(reply, operatorOf(request), slowSearchPage(text), 503);
    }
  });

  app.get<ById>("/console/payments/:id", async (request, reply) => {
    const { id } = request.params;
    const report = isId(id) ? await readPaymentReport(deps, id) : undefined;
    if (!report)
      return sendMessage(request, reply, { status: 404, title: "Payment", text: `There is no payment ${id}.` });
    const listed = await listRefundViews(deps, { paymentId: id, limit: MOST_REFUNDS });
    const refunds = listed.ok ? listed.value.items : [];
    const operator = operatorOf(request);
    const requests = await listOperatorRequests(deps.db, id, MOST_REQUESTS);
    const actions = actionsOfPayment(operator, report.payment, refunds);
    return sendPage(
      reply,
      operator,
      paymentPage(await readAmountFormatter(deps), { report, refunds, requests }, actions),
    );
  });

  app.get<ById>("/console/merchants/:id", async (request, reply) => {
    const { id } = request.params;
    const merchant = isId(id) ? await findMerchantSummary(deps.db, id) : undefined;
    if (!merchant)
      return sendMessage(request, reply, { status: 404, title: "Merchant", text: `There is no merchant ${id}.` });
    const payments = await listPaymentLines(deps, { merchantId: id, limit: MOST_PAYMENTS });
    const operator = operatorOf(request);
    const requests = await listOperatorRequests(deps.db, id, MOST_REQUESTS);
    const actions = actionLinks(operator, id, [merchant.payouts_held_at === null ? "hold-payouts" : "release-payouts"]);
    return sendPage(
      reply,
      operator,
      merchantPage(await readAmountFormatter(deps), { merchant, payments, requests }, actions),
    );
  });
}

/** Returns true for a text that may be an id: Postgres refuses some characters, and compares long texts slowly. */
const isId = (text: string) => /^\w{1,64}$/.test(text);
