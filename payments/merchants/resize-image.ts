import sharp, { type CreateRaw, type Metadata, type WebpOptions } from "sharp";

/** A logo as checkout pages and wallets show it. */
export type ResizedImage = { contentType: "image/webp"; bytes: Buffer; width: number; height: number };

/** Limits of a logo's dimensions (specification, part 8). */
const LIMITS = { minPx: 500, maxPx: 4_096, percentOff: 5 };
/**
 * Longest side of a stored logo. The page shows it at 48 CSS pixels; phones have up to three device pixels for each.
 */
const LOGO_PX = 160;
/** Target size of a stored logo, bytes. */
const LIGHT_BYTES = 6_000;
/** Encodings in the order of preference. Graphics stay sharp without loss; photographs need lossy compression. */
const encodings: readonly WebpOptions[] = [
  { lossless: true },
  ...[80, 60, 40, 20, 5, 1].map((quality) => ({ quality, alphaQuality: quality })),
];
/** Time limit for one image, seconds. */
const WITHIN_S = 10;

const formats = new Set(["image/jpeg", "image/png", "image/webp", "image/avif"]);

// Enable only the decoders of accepted formats: every other decoder is attack surface.
sharp.block({ operation: ["VipsForeignLoad"] });
sharp.unblock({ operation: ["Jpeg", "Png", "Webp", "Heif"].map((name) => `VipsForeignLoad${name}Buffer`) });
// Logos are not urgent, and no image is read twice.
sharp.concurrency(1);
sharp.cache(false);

/**
 * Resizes a logo to WebP with at most 160 pixels a side: upright, the first frame only, without metadata. Returns the
 * error as text if the bytes are not a complete JPEG, PNG, WebP or AVIF, or if the dimensions are not 500 to 4096
 * pixels a side and square within 5 %. Processes one image at a time, because the compression of pages shares its
 * threads.
 */
export function resizeImage(bytes: Buffer): Promise<ResizedImage | string> {
  const shrunk = last.then(() => shrink(bytes));
  last = shrunk.catch(() => undefined);
  return shrunk;
}
let last: Promise<unknown> = Promise.resolve();

async function shrink(bytes: Buffer): Promise<ResizedImage | string> {
  const head = await readHead(bytes).catch(() => undefined);
  if (!head || !formats.has(head.mediaType ?? "")) return "is not a complete JPEG, PNG, WebP or AVIF image";
  const error = validateSize(head);
  if (error) return error;
  try {
    const { data, info } = await sharp(bytes, {
      limitInputPixels: LIMITS.maxPx ** 2,
      sequentialRead: true,
      failOn: "error",
    })
      .autoOrient()
      .resize(LOGO_PX, LOGO_PX, { fit: "inside" })
      .timeout({ seconds: WITHIN_S })
      .raw()
      .toBuffer({ resolveWithObject: true });
    const { width, height, channels } = info;
    return { contentType: "image/webp", bytes: await pack(data, { raw: { width, height, channels } }), width, height };
  } catch {
    return "the image is truncated, corrupt, or takes too long to decode";
  }
}

/** Reads the header only, so that dimensions beyond the limit are reported as such. */
async function readHead(bytes: Buffer): Promise<Metadata> {
  return sharp(bytes, { limitInputPixels: false }).metadata();
}

function validateSize({ width, height }: Pick<Metadata, "width" | "height">): string | undefined {
  const { minPx, maxPx, percentOff } = LIMITS;
  const is = `is ${width} x ${height} pixels, expected`;
  if (Math.min(width, height) < minPx) return `${is} at least ${minPx} x ${minPx}`;
  if (Math.max(width, height) > maxPx) return `${is} at most ${maxPx} x ${maxPx}`;
  if (Math.abs(width - height) * 100 > percentOff * height) return `${is} a square (within ${percentOff} %)`;
  return undefined;
}

async function pack(pixels: Buffer, from: { raw: CreateRaw }): Promise<Buffer> {
  let packed = Buffer.alloc(0);
  for (const encoding of encodings) {
    packed = await sharp(pixels, from)
      .webp({ ...encoding, effort: 6 })
      .toBuffer();
    if (packed.length <= LIGHT_BYTES) break;
  }
  return packed;
}
