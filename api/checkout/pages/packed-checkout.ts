import { randomBytes, randomInt } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { toPaymentLink } from "../../contract/responses.ts";
import { type CheckoutPage, checkoutPage } from "./checkout-page.ts";
import { type PackedTemplate, packTemplate } from "./packed-template.ts";
import { qrSource } from "./qr-code.ts";
import type { ShownPayment } from "./shown-payment.ts";

/** Shapes of pages that are known at most. A template takes 30 kB. */
const MOST_SHAPES = 500;
/** To make a template takes as long as a few hundred pages save by it, so the first pages of a shape need none. */
const PAGES_BEFORE = 20;
/** Time between two templates, milliseconds. Strangers who vary their requests cost little. */
const MAKE_EVERY_MS = 200;

/** What is known of the pages of one shape. `template` is null when the shape cannot have one. */
type Shape = { pages: number; template?: Template | null };
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
    const name = nameShape(page, values);
    const shape = shapes.get(name) ?? { pages: 0 };
    shape.pages += 1;
    // The shapes that were used last come last.
    shapes.delete(name);
    shapes.set(name, shape);
    const [oldest] = shapes.keys();
    if (shapes.size > MOST_SHAPES && oldest !== undefined) shapes.delete(oldest);
    if (shape.template === undefined && shape.pages > PAGES_BEFORE && monotonic() >= nextMakeAt) {
      nextMakeAt = monotonic() + MAKE_EVERY_MS;
      shape.template = makeTemplate(page, values);
    }
    return shape.template ? fillTemplate(shape.template, page, values) : undefined;
  };
}

function fillTemplate({ fill, after }: Template, { view }: CheckoutPage, values: readonly Buffer[]): Buffer {
  return fill(values, Buffer.from(`${view.leftMs}${after[0]}${view.sinceMs}${after[1]}`));
}

/** The texts in which pages of one shape differ, beside the two numbers at the end. */
const slots = [
  "paymentId",
  "shop",
  "amount",
  "time",
  "logoId",
  "referenceId",
] as const satisfies (keyof ShownPayment)[];
type Texts = Pick<ShownPayment, (typeof slots)[number]>;

/** Text that is written in the same way in markup, in an attribute and in JSON: no control characters, and no halves of one. */
const isPlain = (text: string): boolean => /^[^&<>"'\\\p{Cc}\p{Cs}]*$/u.test(text);

/** Returns the values of the slots of a page that may share a template; undefined for another page. The last one is the QR code. */
function listValues(page: CheckoutPage): Buffer[] | undefined {
  const { view, appUrl } = page;
  if (view.state !== "requires_action" || view.info !== null || appUrl !== undefined) return undefined;
  const texts = listTexts(page, view);
  return texts.every(isPlain) ? texts.map((text) => Buffer.from(text)) : undefined;
}

const listTexts = ({ publicUrl }: CheckoutPage, texts: Texts): string[] => [
  ...slots.map((slot) => texts[slot] ?? ""),
  qrSource(toPaymentLink(publicUrl, texts.paymentId)),
];

/** Names what pages that share a template have in common: everything that they show but the values, and the lengths of these. */
function nameShape({ view, language, ...page }: CheckoutPage, values: readonly Buffer[]): string {
  const { paymentId: _i, shop: _s, amount: _a, time: _t, leftMs: _l, sinceMs: _m, ...rest } = view;
  const { logoId, referenceId, ...others } = rest;
  const present = [logoId !== null, referenceId !== null];
  return JSON.stringify([language.tag, page, others, present, values.map(({ length }) => length)]);
}

/**
 * Returns the template of a page's shape, from the page with marks in place of its values; null if it does not make this
 * page exactly.
 */
function makeTemplate(page: CheckoutPage, values: readonly Buffer[]): Template | null {
  const mark = () => randomBytes(16).toString("hex");
  const marks = {
    paymentId: `pay_${mark()}`,
    shop: mark(),
    amount: mark(),
    time: mark(),
    logoId: mark(),
    referenceId: mark(),
  };
  const [leftMs, sinceMs] = [randomInt(2 ** 46, 2 ** 47), randomInt(2 ** 47, 2 ** 48 - 1)];
  const { logoId, referenceId } = page.view;
  const present = { logoId: logoId && marks.logoId, referenceId: referenceId && marks.referenceId };
  const { markup } = checkoutPage({ ...page, view: { ...page.view, ...marks, ...present, leftMs, sinceMs } });
  const [before = "", between = "", end = ""] = markup.split(new RegExp(`${leftMs}|${sinceMs}`));
  const texts = listTexts(page, marks);
  const parts = before.split(new RegExp(`(${texts.map((text) => RegExp.escape(text)).join("|")})`));
  const fill = packTemplate(
    parts.map((part, index) => (index % 2 === 0 ? part : texts.indexOf(part))),
    values.map(({ length }) => length),
  );
  const template: Template = { fill, after: [between, end] };
  const made = gunzipSync(fillTemplate(template, page, values)).toString();
  return made === checkoutPage(page).markup ? template : null;
}
