import sharp, { type CreateRaw, type Metadata, type WebpOptions } from "sharp";

/** A picture as buyers' pages and wallets show it. */
export type SmallPicture = { contentType: "image/webp"; bytes: Buffer; width: number; height: number };

/** What a logo may be, by the specification, part 8. */
const LIMITS = { minPx: 500, maxPx: 4_096, percentOff: 5 };
/** Longest side of what is kept: the page has room for 48, which a phone shows with three dots each. */
export const SMALL_PX = 160;
/** What is kept weighs no more than this, bytes, if any of the tries gets there. */
const LIGHT_BYTES = 6_000;
/** Signs are sharpest without loss; photographs need some. The first that is light enough is taken. */
const tries: readonly WebpOptions[] = [
  { lossless: true },
  ...[80, 60, 40, 20, 5, 1].map((quality) => ({ quality, alphaQuality: quality })),
];
/** So long one picture may be worked on, seconds. */
const WITHIN_S = 10;

const formats = new Set(["image/jpeg", "image/png", "image/webp", "image/avif"]);

// Nothing is decoded but what a logo may be, whatever else the library could: every decoder is a way in.
sharp.block({ operation: ["VipsForeignLoad"] });
sharp.unblock({ operation: ["Jpeg", "Png", "Webp", "Heif"].map((name) => `VipsForeignLoad${name}Buffer`) });
// A logo is nobody's hurry, and no picture comes twice.
sharp.concurrency(1);
sharp.cache(false);

/**
 * Makes a logo small: at most 160 pixels a side, WebP, upright, the first frame, and nothing of what a camera wrote into it.
 * Gives what is wrong, in words, with bytes that are no JPEG, PNG, WebP or AVIF, cut off or broken, not 500 to 4096
 * pixels a side or not square within 5 %. One picture at a time in a process: the packing of pages shares its threads.
 */
export function shrinkPicture(bytes: Buffer): Promise<SmallPicture | string> {
  const shrunk = last.then(() => shrink(bytes));
  last = shrunk.catch(() => undefined);
  return shrunk;
}
let last: Promise<unknown> = Promise.resolve();

async function shrink(bytes: Buffer): Promise<SmallPicture | string> {
  const head = await readHead(bytes).catch(() => undefined);
  if (!head || !formats.has(head.mediaType ?? ""))
    return "is not a JPEG, PNG, WebP or AVIF picture, or not a whole one";
  const fault = findSizeFault(head);
  if (fault) return fault;
  try {
    const { data, info } = await sharp(bytes, {
      limitInputPixels: LIMITS.maxPx ** 2,
      sequentialRead: true,
      failOn: "error",
    })
      .autoOrient()
      .resize(SMALL_PX, SMALL_PX, { fit: "inside" })
      .timeout({ seconds: WITHIN_S })
      .raw()
      .toBuffer({ resolveWithObject: true });
    const { width, height, channels } = info;
    return { contentType: "image/webp", bytes: await pack(data, { raw: { width, height, channels } }), width, height };
  } catch {
    return "the picture is cut off, broken, or takes too long to decode";
  }
}

/** Only the head is read, so that sizes beyond the limit can be told as such. */
async function readHead(bytes: Buffer): Promise<Metadata> {
  return sharp(bytes, { limitInputPixels: false }).metadata();
}

function findSizeFault({ width, height }: Pick<Metadata, "width" | "height">): string | undefined {
  const { minPx, maxPx, percentOff } = LIMITS;
  const is = `is ${width} x ${height} pixels, expected`;
  if (Math.min(width, height) < minPx) return `${is} at least ${minPx} x ${minPx}`;
  if (Math.max(width, height) > maxPx) return `${is} at most ${maxPx} x ${maxPx}`;
  if (Math.abs(width - height) * 100 > percentOff * height) return `${is} a square (within ${percentOff} %)`;
  return undefined;
}

async function pack(pixels: Buffer, from: { raw: CreateRaw }): Promise<Buffer> {
  let packed = Buffer.alloc(0);
  for (const how of tries) {
    packed = await sharp(pixels, from)
      .webp({ ...how, effort: 6 })
      .toBuffer();
    if (packed.length <= LIGHT_BYTES) break;
  }
  return packed;
}
