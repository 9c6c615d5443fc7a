import { createHash } from "node:crypto";
import { findLogoBytes, insertLogo } from "../../db/queries/logos.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { type ResizedImage, resizeImage } from "./resize-image.ts";

/** Maximum size of a logo file (specification, part 8). */
const MOST_BYTES = 2 * 1024 * 1024;
const WITHIN_MS = 10_000;
const REDIRECTS = 3;

/**
 * Fetches a logo over HTTPS, never from a private network, and resizes it. Refuses a file that it cannot use with
 * `params_validation`. A logo is square within 5 %, has 500 to 4096 pixels a side and at most 2 MiB, and is a JPEG,
 * PNG, WebP or AVIF. The format is detected from the bytes, not from the server's content type.
 */
export async function fetchLogo(deps: Pick<PaymentDeps, "safeFetch">, url: string): Promise<Result<ResizedImage>> {
  const wrong = (what: string) => refuse("params_validation", `iconUrl: ${what}`);
  const answer = await deps.safeFetch({
    method: "GET",
    url,
    timeoutMs: WITHIN_MS,
    maxBytes: MOST_BYTES,
    redirects: REDIRECTS,
  });
  if (!answer.ok) return wrong(answer.reason);
  if (answer.status !== 200) return wrong(`the server answered ${answer.status}`);
  const picture = await resizeImage(answer.body);
  return typeof picture === "string" ? wrong(picture) : done(picture);
}

/** Stores our copy of a logo under the hash of its content. Returns its id. */
export async function saveLogo(deps: Pick<PaymentDeps, "db" | "now">, logo: ResizedImage): Promise<string> {
  const id = createHash("sha256").update(logo.bytes).digest("hex");
  const { contentType: content_type, bytes, width, height } = logo;
  await insertLogo(deps.db, { id, content_type, bytes, width, height, created_at: deps.now() });
  return id;
}

/** Returns our copy of a logo; undefined when there is none with that id. */
export async function findLogo(
  deps: Pick<PaymentDeps, "db">,
  id: string,
): Promise<{ contentType: string; bytes: Buffer } | undefined> {
  const row = await findLogoBytes(deps.db, id);
  return row && { contentType: row.content_type, bytes: row.bytes };
}
