import type { WebhookEvent } from "./events.ts";

/** A request that is not proven to be a webhook of the service: answer it with 400, and do not read its body. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError";
}

/** The headers of a request, as Node, `fetch` and web frameworks hold them. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

export type VerifyOptions = {
  /** How far the time of the request may be from now, seconds. Default: 300. */
  toleranceSeconds?: number;
  /** The present time; the clock of the machine when left out. */
  now?: Date;
};

/**
 * Verifies a webhook by the rules of Standard Webhooks (HMAC-SHA256, compared in constant time) and returns its event. Rejects
 * with a `WebhookVerificationError` when the request is not signed with the secret, or is too old, and with a `TypeError` when
 * the program passes no secret or no body.
 * @param rawBody the body as it was received: parsed and serialized again it has other bytes
 * @param secret the secret of the endpoint (`whsec_…`), or several while one is rotated
 */
export async function verifyWebhook(
  rawBody: string | Uint8Array | ArrayBuffer,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  { toleranceSeconds = 300, now = new Date() }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const secrets = [secret].flat().map(decodeSecret);
  if (secrets.length === 0) throw new TypeError("secret: expected at least one");
  const read = (name: string) => readHeader(headers, `webhook-${name}`) ?? readHeader(headers, `svix-${name}`);
  const [id, timestamp, signatures] = [read("id"), read("timestamp"), read("signature")];
  if (!id || !timestamp || !signatures) throw new WebhookVerificationError("a header of the signature is missing");
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookVerificationError("the time of the webhook is no number");
  // Before the signature, which costs more.
  if (Math.abs(now.getTime() / 1000 - Number(timestamp)) > toleranceSeconds)
    throw new WebhookVerificationError("the webhook is too old, or from the future");
  const body = toBytes(rawBody);
  const signed = concatenate(new TextEncoder().encode(`${id}.${timestamp}.`), body);
  const right = await Promise.all(secrets.map((one) => computeSignature(one, signed)));
  const given = parseSignatures(signatures);
  if (!right.some((one) => given.some((other) => isSame(one, other))))
    throw new WebhookVerificationError("no signature of the webhook matches the secret and the body");
  return JSON.parse(new TextDecoder().decode(body)) as WebhookEvent;
}

function readHeader(headers: WebhookHeaders, name: string): string | undefined {
  if (isHeaders(headers)) return headers.get(name) ?? undefined;
  const found = Object.entries(headers).find(([given]) => given.toLowerCase() === name)?.[1];
  const values = [found ?? []].flat();
  return values.length === 1 ? values[0] : undefined;
}

/** Frameworks bring a class of their own, so its method identifies it. */
const isHeaders = (headers: WebhookHeaders): headers is Headers => typeof headers["get"] === "function";

/** Returns the bytes of a body. Throws for a parsed one, which is the usual mistake. */
function toBytes(rawBody: unknown): Uint8Array {
  if (typeof rawBody === "string") return new TextEncoder().encode(rawBody);
  if (rawBody instanceof ArrayBuffer) return new Uint8Array(rawBody);
  if (rawBody instanceof Uint8Array) return rawBody;
  throw new TypeError("rawBody: expected the body as it was received (text or bytes), not a parsed one");
}

/** Bytes that a secret has at least; those of the service have 32. */
const MIN_SECRET_BYTES = 16;

/** Throws for what is no secret: a missing one would become a key that everybody knows. */
function decodeSecret(secret: unknown): Uint8Array<ArrayBuffer> {
  const bytes = typeof secret === "string" ? decodeBase64(secret.replace(/^whsec_/, "")) : undefined;
  if (!bytes || bytes.length < MIN_SECRET_BYTES)
    throw new TypeError("secret: expected whsec_ and at least 16 bytes in base64");
  return bytes;
}

async function computeSignature(secret: Uint8Array<ArrayBuffer>, signed: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, signed));
}

/** Returns the signatures of version 1: `v1,<base64> v1,<base64>`. Those of other versions are left out. */
const parseSignatures = (text: string): Uint8Array[] =>
  text.split(" ").flatMap((entry) => (entry.startsWith("v1,") ? (decodeBase64(entry.slice(3)) ?? []) : []));

/** Compares all bytes, so that the time does not tell a forger how many are right. */
function isSame(right: Uint8Array, given: Uint8Array): boolean {
  const differences = right.reduce((found, byte, at) => found | (byte ^ (given[at] ?? 0)), 0);
  return differences === 0 && given.length === right.length;
}

function concatenate(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(first.length + second.length);
  whole.set(first);
  whole.set(second, first.length);
  return whole;
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
