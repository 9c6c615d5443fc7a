import type { FastifyInstance } from "fastify";
import { listFailures } from "../../db/queries/failed-bookings.ts";
import { listChainStatuses, listLaneStatuses } from "../../db/queries/gauges.ts";
import { listHeldMerchants } from "../../db/queries/payment-search.ts";
import { listEndpointReports } from "../../db/queries/rpc-endpoints.ts";
import { listEndpointHealth, listHeldTransfers, listUnfinishedWork } from "../../db/queries/unfinished-work.ts";
import { type ExceptionView, listExceptions } from "../../payments/accounting/resolve-exceptions.ts";
import { listBlockedPayouts } from "../../payments/payouts/dispatch-payouts.ts";
import { listRefundViews } from "../../payments/payouts/find-refunds.ts";
import { operatorOf } from "../operator-login/session-guard.ts";
import { actionLinks, actionsOfException } from "./action-links.ts";
import { readAmountFormatter } from "./amount-formatter.ts";
import type { ConsoleDeps } from "./console-deps.ts";
import { sendPage } from "./console-page.ts";
import { endpointsPage } from "./endpoints-page.ts";
import { exceptionsPage } from "./exceptions-page.ts";
import { heldPage } from "./held-page.ts";
import { lanesPage } from "./lanes-page.ts";
import { ages, unfinishedPage } from "./unfinished-page.ts";

/** How old a live worker's report about RPC endpoints may be, milliseconds: two intervals of its reports, and some time to write it. */
const RECENT_MS = 75_000;

/** Most rows of one list. */
const limit = 200;

/** Serves the lists: unfinished work, exceptions, what is held, lanes and webhook endpoints. */
export function serveLists(app: FastifyInstance, deps: ConsoleDeps): void {
  const { db, now } = deps;
  app.get<{ Querystring: { minutes?: unknown } }>("/console/unfinished", async (request, reply) => {
    const age = ages.find((one) => String(one) === request.query.minutes) ?? ages[0];
    const before = new Date(now().getTime() - age * 60_000);
    const work = await listUnfinishedWork(db, { before, now: now(), limit });
    return sendPage(reply, operatorOf(request), unfinishedPage(work, age));
  });
  app.get("/console/exceptions", async (request, reply) => {
    const operator = operatorOf(request);
    const exceptions = await listExceptions(deps, limit);
    const failures = await listFailures(db, limit);
    const actions = {
      ofException: (one: ExceptionView) => actionsOfException(operator, one),
      ofFailure: (id: number) => actionLinks(operator, String(id), ["retry-booking"]),
    };
    return sendPage(reply, operator, exceptionsPage(await readAmountFormatter(deps), exceptions, failures, actions));
  });
  app.get("/console/held", async (request, reply) => {
    const refunds = await listRefundViews(deps, { statuses: ["held"], limit });
    const page = heldPage(await readAmountFormatter(deps), {
      merchants: await listHeldMerchants(db, limit),
      queues: await listBlockedPayouts(deps, limit),
      refunds: refunds.ok ? refunds.value.items : [],
      transfers: await listHeldTransfers(db, { now: now(), limit }),
    });
    return sendPage(reply, operatorOf(request), page);
  });
  app.get("/console/lanes", async (request, reply) =>
    sendPage(
      reply,
      operatorOf(request),
      lanesPage(
        await listLaneStatuses(db),
        await listChainStatuses(db, now()),
        await listEndpointReports(db, new Date(now().getTime() - RECENT_MS)),
      ),
    ),
  );
  app.get("/console/endpoints", async (request, reply) =>
    sendPage(reply, operatorOf(request), endpointsPage(await listEndpointHealth(db, limit))),
  );
}
