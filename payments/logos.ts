import { createHash } from "node:crypto";
import { imageSize } from "image-size";
import type { PaymentDeps } from "./deps.ts";
import { done, type Result, refuse } from "./errors.ts";

/** A logo that has been fetched and is within the limits. */
export type Logo = { contentType: string; bytes: Buffer; width: number; height: number };

/** Limits of the specification, part 8. */
const LIMITS = { minPx: 500, maxPx: 4_096, percentOff: 5, maxBytes: 2 * 1024 * 1024 };
const WITHIN_MS = 10_000;
const REDIRECTS = 3;

/** What image-size calls a format, and what it is served as. Looked for in the bytes, whatever the server says it is. */
const formats: Record<string, string> = { jpg: "image/jpeg", png: "image/png", webp: "image/webp", avif: "image/avif" };

/**
 * Fetches a logo now, over HTTPS and never from a private network. Refuses with `params_validation` and what is wrong
 * with `iconUrl`: square within 5 %, 500 to 4096 pixels a side, JPEG, PNG, WebP or AVIF, at most 2 MiB.
 */
export async function fetchLogo(deps: Pick<PaymentDeps, "outward">, url: string): Promise<Result<Logo>> {
  const wrong = (what: string) => refuse("params_validation", `iconUrl: ${what}`);
  const answer = await deps.outward({
    method: "GET",
    url,
    timeoutMs: WITHIN_MS,
    maxBytes: LIMITS.maxBytes,
    redirects: REDIRECTS,
  });
  if (!answer.ok) return wrong(answer.reason);
  if (answer.status !== 200) return wrong(`the server answered ${answer.status}`);
  const picture = readPicture(answer.body);
  return typeof picture === "string" ? wrong(picture) : done(picture);
}

/** The picture in these bytes, or what is wrong with it. */
export function readPicture(bytes: Buffer): Logo | string {
  let found: { type?: string; width: number; height: number };
  try {
    found = imageSize(bytes);
  } catch {
    return "is not a JPEG, PNG, WebP or AVIF picture";
  }
  const contentType = formats[found.type ?? ""];
  if (!contentType) return "is not a JPEG, PNG, WebP or AVIF picture";
  if (isCutOff(bytes, contentType)) return "the picture is cut off";
  const { width, height } = found;
  if (Math.min(width, height) < LIMITS.minPx)
    return `is ${width} x ${height} pixels, expected at least ${LIMITS.minPx} x ${LIMITS.minPx}`;
  if (Math.max(width, height) > LIMITS.maxPx)
    return `is ${width} x ${height} pixels, expected at most ${LIMITS.maxPx} x ${LIMITS.maxPx}`;
  if (Math.abs(width - height) * 100 > LIMITS.percentOff * height)
    return `is ${width} x ${height} pixels, expected a square (within 5 %)`;
  return { contentType, bytes, width, height };
}

/** The formats say in their own way where they end; AVIF's boxes are taken as they come. */
function isCutOff(bytes: Buffer, contentType: string): boolean {
  if (contentType === "image/png") return !bytes.subarray(-12).includes("IEND");
  if (contentType === "image/jpeg") return !bytes.subarray(-64).includes(Buffer.from([0xff, 0xd9]));
  if (contentType === "image/webp") return bytes.length < bytes.readUInt32LE(4) + 8;
  return false;
}

/** Keeps our copy, named by its content; gives its id. */
export async function saveLogo(deps: Pick<PaymentDeps, "db" | "now">, logo: Logo): Promise<string> {
  const id = createHash("sha256").update(logo.bytes).digest("hex");
  const { contentType: content_type, bytes, width, height } = logo;
  await deps.db
    .insertInto("logo")
    .values({ id, content_type, bytes, width, height, created_at: deps.now() })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return id;
}

/** Our copy of a logo; undefined when there is none of that id. */
export async function findLogo(
  deps: Pick<PaymentDeps, "db">,
  id: string,
): Promise<{ contentType: string; bytes: Buffer } | undefined> {
  const row = await deps.db
    .selectFrom("logo")
    .select(["content_type", "bytes"])
    .where("id", "=", id)
    .executeTakeFirst();
  return row && { contentType: row.content_type, bytes: row.bytes };
}
