import { randomBytes, randomInt } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { toPaymentLink } from "../../contract/responses.ts";
import { type CheckoutPage, checkoutPage } from "./checkout-page.ts";
import { type PackedTemplate, packTemplate } from "./packed-template.ts";
import { qrSource } from "./qr-code.ts";

/** Shapes of pages that are known at most. A template takes 30 kB. */
const MOST = 500;
/** Time between two templates, milliseconds: so strangers who vary their requests cost little. */
const MAKE_EVERY_MS = 100;

/** What is known of the pages of one shape. A template takes as long to make as ten pages, so the first page needs none. */
type Shape = { template?: Template | undefined; made: boolean };
/** `after` are the texts after the two numbers at the end of the page. */
type Template = { fill: PackedTemplate; after: readonly [string, string] };

/**
 * Returns a function that returns the checkout page of a payment that waits for its buyer, compressed (gzip): exactly what
 * `checkoutPage` returns. Pages that differ only in values of the same lengths share a template. The function returns
 * undefined for other pages, and while a shape has no template.
 * @param monotonic a clock that is never adjusted, milliseconds
 */
export function createCheckoutPacker(monotonic: () => number): (page: CheckoutPage) => Buffer | undefined {
  const shapes = new Map<string, Shape>();
  let nextMakeAt = 0;
  return (page) => {
    const values = listValues(page);
    if (!values) return undefined;
    const key = nameShape(page, values);
    const known = shapes.get(key);
    const shape = known ?? { made: false };
    // The shapes that were used last come last.
    shapes.delete(key);
    shapes.set(key, shape);
    const [oldest] = shapes.keys();
    if (shapes.size > MOST && oldest !== undefined) shapes.delete(oldest);
    if (known && !shape.made && monotonic() >= nextMakeAt) {
      shape.template = findExact(makeTemplate(page, values), page, values);
      shape.made = true;
      nextMakeAt = monotonic() + MAKE_EVERY_MS;
    }
    return shape.template && fillTemplate(shape.template, page, values);
  };
}

function fillTemplate({ fill, after }: Template, { view }: CheckoutPage, values: readonly Buffer[]): Buffer {
  return fill(values, Buffer.from(`${view.leftMs}${after[0]}${view.sinceMs}${after[1]}`));
}

/** Returns the template if it makes the page exactly. */
function findExact(
  template: Template | undefined,
  page: CheckoutPage,
  values: readonly Buffer[],
): Template | undefined {
  const made = template && gunzipSync(fillTemplate(template, page, values)).toString();
  return made === checkoutPage(page).markup ? template : undefined;
}

/** The texts in which pages of one shape differ. */
type Varying = { id: string; qr: string; shop: string; amount: string; time: string; logo: string; reference: string };

const names = ["id", "qr", "shop", "amount", "time", "logo", "reference"] as const satisfies (keyof Varying)[];

/** Text that is written in the same way in markup, in an attribute and in JSON. */
const isPlain = (text: string): boolean => /^[^&<>"'\\\p{C}]*$/u.test(text);

/** Returns the values of the slots of a page that may share a template; undefined for another page. */
function listValues({ view, amount, time, publicUrl, appUrl }: CheckoutPage): Buffer[] | undefined {
  if (view.state !== "requires_action" || appUrl !== undefined) return undefined;
  const { paymentId, merchant, referenceId } = view;
  const qr = qrSource(toPaymentLink(publicUrl, paymentId));
  const texts: Varying = {
    id: paymentId,
    qr,
    shop: merchant.name,
    amount,
    time,
    logo: merchant.logoId ?? "",
    reference: referenceId ?? "",
  };
  return names.every((name) => isPlain(texts[name])) ? names.map((name) => Buffer.from(texts[name])) : undefined;
}

/** Names what pages have in common that share a template: everything but the values, and the lengths of these. */
function nameShape({ view, language, amount: _a, time: _t, ...page }: CheckoutPage, values: readonly Buffer[]): string {
  const { paymentId: _i, referenceId: _r, merchant: _m, amount: _v, ...others } = view;
  const { leftMs: _l, sinceMs: _s, changedAt: _c, createdAt: _o, expiresAt: _e, ...rest } = others;
  return JSON.stringify([language.tag, page, rest, values.map(({ length }) => length)]);
}

/** Makes the template of a page's shape from a page with marks in place of the values. */
function makeTemplate(page: CheckoutPage, values: readonly Buffer[]): Template | undefined {
  const { view, publicUrl } = page;
  const mark = () => randomBytes(16).toString("hex");
  const [id, shop, amount, time, logo, reference] = [`pay_${mark()}`, mark(), mark(), mark(), mark(), mark()];
  const [leftMs, sinceMs] = [randomInt(2 ** 46, 2 ** 47), randomInt(2 ** 47, 2 ** 48 - 1)];
  const marks: Varying = { id, qr: qrSource(toPaymentLink(publicUrl, id)), shop, amount, time, logo, reference };
  const merchant = { ...view.merchant, name: shop, logoId: view.merchant.logoId && logo };
  const marked = { ...view, paymentId: id, leftMs, sinceMs, merchant, referenceId: view.referenceId && reference };
  const { markup } = checkoutPage({ ...page, amount, time, view: marked });
  const [before = "", afterLeft = "", ...more] = markup.split(String(leftMs));
  const [between = "", afterSince = "", ...others] = afterLeft.split(String(sinceMs));
  const texts: string[] = names.map((name) => marks[name]);
  if (more.length > 0 || others.length > 0 || texts.some((text) => afterLeft.includes(text))) return undefined;
  const parts = before.split(new RegExp(`(${texts.map((text) => RegExp.escape(text)).join("|")})`));
  const lengths = values.map(({ length }) => length);
  const fill = packTemplate(
    parts.map((part, index) => (index % 2 === 0 ? part : texts.indexOf(part))),
    lengths,
  );
  return fill && { fill, after: [between, afterSince] };
}
