import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { findDataStatus } from "../../../payments/buyer-data/collected-data.ts";
import { listFramesOf } from "../../../payments/buyer-data/frame-origins.ts";
import type { CheckoutView } from "../../../payments/lifecycle/checkout-view.ts";
import type { Html } from "../../../runtime/html.ts";
import type { ApiDeps } from "../../api-deps.ts";
import { text } from "../../contract/request-schemas.ts";
import { statusOf } from "../../http/http-errors.ts";
import { readPublicUrl } from "../../http/public-url.ts";
import { addressLimitKey } from "../../http/rate-limits.ts";
import { type CheckoutPage, checkoutPage } from "../pages/checkout-page.ts";
import { collectPage } from "../pages/collect-page.ts";
import { createCheckoutPacker } from "../pages/packed-checkout.ts";
import { plainPage } from "../pages/page-layout.ts";
import { showPayment } from "../pages/shown-payment.ts";
import { assets } from "../release/script-bundles.ts";
import { type Language, pickLanguage } from "../texts/languages.ts";
import { keepSession } from "./browser-session.ts";
import { findPaymentByLink, openPaymentByLink, readRequester, serveCheckoutApi } from "./checkout-api.ts";
import { serveReports } from "./csp-reports.ts";
import { pageHeaders, setPageHeaders } from "./page-headers.ts";
import { firstOf, type Query, readAppUrl, readTheme, withLanguage } from "./page-query.ts";
import { readPrefill } from "./prefill.ts";
import { prefersGzip, sendAsset, sendPacked, sendPage } from "./send-page.ts";

type PageRequest = { request: FastifyRequest; reply: FastifyReply; query: Query; language: Language };

type CollectParams = { id: string; optionId: string; by: string };

/**
 * During a rollout, a page of one release may ask an api of the other release for its script. That api sends the browser on to
 * another one, so many times at most. Browsers follow 20 redirects.
 */
const MOST_TRIES = 12;
const SCRIPT = "^(?:checkout|collect)\\.[0-9a-f]{16}\\.js$";
type ScriptRequest = { Params: { file: string }; Querystring: { tried?: string } };

const DAY_MS = 24 * 60 * 60_000;
const PAYMENT_ID = "^pay_[0-9a-f]{32}$";

/** Serves the buyer's pages, their scripts and the routes that the scripts request. */
export function serveCheckout(app: FastifyInstance, deps: ApiDeps): void {
  const headers = pageHeaders(deps.publicUrl);
  const open = (request: FastifyRequest, reply: FastifyReply): PageRequest => {
    const query = request.query as Query;
    const language = pickLanguage(firstOf(query["lang"]), request.headers["accept-language"]);
    setPageHeaders(reply, headers);
    reply.header("content-language", language.tag);
    return { request, reply, query, language };
  };
  const pageOptions = {
    async errorHandler(err: Error, request: FastifyRequest, reply: FastifyReply) {
      request.log.error({ err, route: request.routeOptions.url }, "request failed");
      return sendMessage(deps, open(request, reply), "internal_error");
    },
  };
  const checkoutDeps = { ...deps, pack: createCheckoutPacker(() => performance.now()) };
  // A payment link carries the id in its query, or as its path (specification, 4.3 rule 6).
  app.get("/", pageOptions, async (request, reply) => {
    const page = open(request, reply);
    return sendCheckout(checkoutDeps, page, firstOf(page.query["pid"]) ?? "");
  });
  app.get<{ Params: { id: string } }>(`/:id(${PAYMENT_ID})`, pageOptions, async (request, reply) => {
    return sendCheckout(checkoutDeps, open(request, reply), request.params.id);
  });
  app.get<{ Params: CollectParams }>("/collect/:id/:optionId/:by", pageOptions, async (request, reply) => {
    return sendCollect(deps, open(request, reply), request.params);
  });
  for (const asset of Object.values(assets))
    app.get(`/assets/${asset.file}`, async (request, reply) => sendAsset(request, reply, asset));
  app.get<ScriptRequest>(`/assets/:file(${SCRIPT})`, async ({ params, query }, reply) => {
    const tried = Number(query.tried ?? 0) + 1;
    if (!(tried <= MOST_TRIES)) return reply.callNotFound();
    // The load balancer chooses again for a new connection.
    reply.headers({ "cache-control": "no-store", connection: "close" });
    return reply.redirect(`${params.file}?tried=${tried}`, 307);
  });
  serveCheckoutApi(app, deps);
  serveReports(app, deps);
}

type CheckoutDeps = ApiDeps & { pack: ReturnType<typeof createCheckoutPacker> };

async function sendCheckout(deps: CheckoutDeps, page: PageRequest, id: string): Promise<FastifyReply> {
  const { request, reply, query, language } = page;
  if (await deps.limits.address(addressLimitKey(request.ip), reply)) return sendMessage(deps, page, "rate_limited");
  keepSession(request, reply, deps.publicUrl);
  const opened = await openPaymentByLink(deps, id);
  if (!opened.ok) return sendMessage(deps, page, "payment_not_found");
  const checkout: CheckoutPage = {
    view: showPayment(opened.value.view, language),
    ways: opened.value.ways,
    language,
    publicUrl: deps.publicUrl,
    theme: readTheme(query),
    refresh: firstOf(query["refresh"]) === "1",
    appUrl: readAppUrl(query, deps.appSchemes),
    legal: deps.legal,
  };
  const packed = prefersGzip(request) ? deps.pack(checkout) : undefined;
  return packed ? sendPacked(reply, packed) : sendPage(request, reply, checkoutPage(checkout));
}

async function sendCollect(
  deps: ApiDeps,
  page: PageRequest,
  { id, optionId, by }: CollectParams,
): Promise<FastifyReply> {
  const { request, reply, query, language } = page;
  if (await deps.limits.address(addressLimitKey(request.ip), reply)) return sendMessage(deps, page, "rate_limited");
  const { view, stage } = await findStage(deps, { id, optionId, by });
  const frames = view ? await listFramesOf(deps, view) : [];
  // The page notifies the wallet that opened it in a pop-up, so it keeps its opener.
  setPageHeaders(reply, pageHeaders(deps.publicUrl, { opener: "both", frames }));
  const markup = collectPage({
    stage,
    view,
    optionId,
    by,
    language,
    publicUrl: deps.publicUrl,
    theme: readTheme(query),
    prefill: readPrefill(firstOf(query["prefill"])),
    appUrl: readAppUrl(query, deps.appSchemes),
    back: firstOf(query["back"]) === "1",
    frames,
    legal: deps.legal,
    days: Math.ceil(deps.collectedDataMs / DAY_MS),
    inLanguage: (tag) => withLanguage(query, tag),
  });
  return sendPage(request, reply.code(view ? 200 : 404), markup);
}

/** Returns the stage of an option's data page; `view` is undefined when there is no such option. */
async function findStage(
  deps: ApiDeps,
  { id, optionId, by }: CollectParams,
): Promise<{ view: CheckoutView | undefined; stage: "open" | "given" | "ended" }> {
  const found = await findPaymentByLink(deps, id);
  const isId = text(128).safeParse(optionId).success;
  const requester = readRequester(by);
  if (!found.ok || !isId || !requester) return { view: undefined, stage: "ended" };
  const requested = await findDataStatus(deps, { paymentId: id, mode: found.value.mode, optionId, requester });
  if (requested.ok) return { view: found.value, stage: requested.value.given ? "given" : "open" };
  return { view: requested.code === "payment_not_found" ? undefined : found.value, stage: "ended" };
}

async function sendMessage(
  deps: ApiDeps,
  { request, reply, query, language }: PageRequest,
  code: "payment_not_found" | "rate_limited" | "internal_error",
): Promise<FastifyReply> {
  const { texts } = language;
  const words = {
    payment_not_found: { title: texts.notFoundTitle, text: texts.notFoundText },
    internal_error: { title: texts.serverErrorTitle, text: texts.serverErrorText },
    rate_limited: { title: texts.tooOftenTitle, text: texts.tooOftenText },
  };
  const { base } = readPublicUrl(deps.publicUrl);
  const inLanguage = (tag: string): string => withLanguage(query, tag);
  const page: Html = plainPage({ language, base, theme: readTheme(query), inLanguage }, words[code]);
  return sendPage(request, reply.code(statusOf[code]), page);
}
