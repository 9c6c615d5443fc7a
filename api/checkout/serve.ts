import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { listWays } from "../../payments/checkout.ts";
import type { ApiDeps } from "../deps.ts";
import { statusOf } from "../errors.ts";
import { addressGroup } from "../limits.ts";
import { assets } from "./assets.ts";
import { checkoutPage } from "./checkout-page.ts";
import { setPageHeaders } from "./headers.ts";
import type { Html } from "./html.ts";
import { findByLink, serveKeyless } from "./keyless.ts";
import { type Language, pickLanguage } from "./languages.ts";
import { plainPage } from "./layout.ts";
import { sendAsset, sendPage } from "./send.ts";

type Query = Record<string, string | string[] | undefined>;
type Asked = { request: FastifyRequest; reply: FastifyReply; query: Query; language: Language };

const ID = "^pay_[0-9a-f]{32}$";
/** Schemes that an app can have for its own; whatever a browser gives a meaning of its own to is none. */
const notAnApp =
  /^(https?|javascript|data|blob|file|about|vbscript|intent|tel|sms|filesystem|view-source|ws|wss|ftp|mailto):/i;

/** The buyer's pages, their scripts and the keyless routes that these talk to. */
export function serveCheckout(app: FastifyInstance, deps: ApiDeps): void {
  const open = (request: FastifyRequest, reply: FastifyReply): Asked => {
    const query = request.query as Query;
    const language = pickLanguage(one(query.lang), request.headers["accept-language"]);
    setPageHeaders(reply, deps.publicUrl);
    reply.header("content-language", language.tag);
    return { request, reply, query, language };
  };
  // A payment link carries the id in its query, or as its path (specification, 4.3 rule 6).
  app.get("/", async (request, reply) => {
    const asked = open(request, reply);
    return sendCheckout(deps, asked, one(asked.query.pid) ?? "");
  });
  app.get(`/:id(${ID})`, async (request, reply) => {
    return sendCheckout(deps, open(request, reply), (request.params as { id: string }).id);
  });
  for (const asset of Object.values(assets))
    app.get(`/assets/${asset.file}`, async (request, reply) => sendAsset(request, reply, asset));
  serveKeyless(app, deps);
}

const one = (given: Query[string]): string | undefined => (typeof given === "string" ? given : given?.[0]);

async function sendCheckout(deps: ApiDeps, asked: Asked, id: string): Promise<FastifyReply> {
  const { request, reply, query, language } = asked;
  if (await deps.limits.address(addressGroup(request.ip), reply)) return sendPlain(deps, asked, "rate_limited");
  const view = await findByLink(deps, id);
  if (!view.ok) return sendPlain(deps, asked, "payment_not_found");
  const ways = await listWays(deps, id);
  const wanted = one(query.theme);
  const theme = wanted === "light" || wanted === "dark" ? wanted : undefined;
  const page = checkoutPage({
    view: view.value,
    ways: ways.ok ? ways.value : [],
    language,
    publicUrl: deps.publicUrl,
    theme,
    refresh: one(query.refresh) === "1",
    appUrl: readAppUrl(one(query.returnUrl)),
  });
  return sendPage(request, reply, page);
}

/** The scheme of an app that has opened the page in its web view; it becomes a link, and is never followed by itself. */
function readAppUrl(text: string | undefined): string | undefined {
  if (text === undefined || text.length > 1_024) return undefined;
  return /^[a-z][a-z0-9+.-]*:[!-~]*$/i.test(text) && !notAnApp.test(text) ? text : undefined;
}

async function sendPlain(
  deps: ApiDeps,
  { request, reply, language }: Asked,
  code: "payment_not_found" | "rate_limited",
): Promise<FastifyReply> {
  const { texts } = language;
  const words = {
    payment_not_found: { title: texts.notFoundTitle, text: texts.notFoundText },
    rate_limited: { title: texts.tooOftenTitle, text: texts.tooOftenText },
  };
  const base = new URL(deps.publicUrl).pathname.replace(/\/$/, "");
  const inLanguage = (tag: string): string => `?lang=${tag}`;
  const page: Html = plainPage({ language, base, inLanguage }, words[code]);
  return sendPage(request, reply.code(statusOf[code]), page);
}
