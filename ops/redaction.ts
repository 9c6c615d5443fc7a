/** Members whose value never reaches a log line, whatever they hold (numbers and booleans aside: `signed: true` is fine). */
export const secretMembers = [
  "key",
  "apiKey",
  "api-key",
  "apikey",
  "privateKey",
  "secretKey",
  "signingKey",
  "secret",
  "password",
  "passphrase",
  "mnemonic",
  "authorization",
  "Authorization",
  "cookie",
  "signature",
  "signatures",
  "sig",
  "signed",
  "signedBytes",
  "signedTransaction",
  "rawTransaction",
  "serializedTransaction",
  "rawTx",
  "raw",
  "bytes",
  "results",
  "DATABASE_URL",
  "databaseUrl",
  "REDIS_URL",
  "redisUrl",
  "ADMIN_PASSWORD",
] as const;

const plain = (name: string) => name.toLowerCase().replaceAll(/[_-]/g, "");
const secretNames = new Set(secretMembers.map(plain));
const maxDepth = 6;

/** Replaces a secret; tells nothing of its length. */
export function censor(value: unknown): unknown {
  return typeof value === "number" || typeof value === "boolean" || value == null ? value : "[redacted]";
}

/**
 * The last net, under names and serializers: what looks like a signature, raw transaction, one of our API keys,
 * a bearer token or a URL's password is cut out of any text. Hashes and addresses (64 digits or fewer) stay.
 */
export function scrubText(text: string): string {
  return (
    text
      // The look behind keeps a long run of digits from being tried again from each of its digits.
      .replaceAll(/(?<![0-9a-f])[0-9a-f]{65,}/gi, "[redacted hex]")
      .replaceAll(/\bsvc_(test_)?[A-Za-z0-9_-]{8,}/g, "svc_$1[redacted]")
      .replaceAll(/\b(bearer|basic) [^\s"\\]{12,}/gi, "$1 [redacted]")
      .replaceAll(/(\w:\/\/)[^\s"\\/@]+@/g, "$1[redacted]@")
  );
}

/**
 * What a log line may say about an error: an allow-list, because errors of libraries carry request bodies, SQL
 * parameters and URLs with keys in them. viem puts the raw transaction into `message`, so its `shortMessage` is taken.
 */
export function describeError(error: unknown, depth = 0): unknown {
  // Anything can be thrown, or be the cause of something.
  if (typeof error === "string") return scrubMessage(error);
  if (!(error instanceof Error)) return withoutSecret(error, depth);
  const code: unknown = "code" in error ? error.code : undefined;
  return {
    type: error.name,
    ...(typeof code === "string" || typeof code === "number" ? { code } : {}),
    message: errorMessage(error),
    stack: stackFrames(error),
    ...(error.cause !== undefined && depth < maxDepth ? { cause: describeError(error.cause, depth + 1) } : {}),
    ...(error instanceof AggregateError && depth < maxDepth
      ? { errors: error.errors.slice(0, 5).map((inner: unknown) => describeError(inner, depth + 1)) }
      : {}),
  };
}

/** One line of an error that is safe to show. */
export function errorMessage(error: Error): string {
  const short: unknown = "shortMessage" in error ? error.shortMessage : undefined;
  return scrubMessage(typeof short === "string" ? short : error.message);
}

/** One line about whatever was thrown that is safe to show: its kind, and its message without secrets. */
export function describeBriefly(thrown: unknown): string {
  return thrown instanceof Error ? `${thrown.name}: ${errorMessage(thrown)}` : scrubMessage(String(thrown));
}

/** Copies what is to be logged without its secrets, at any depth. */
export function withoutSecrets(fields: Record<string, unknown>, depth = 0): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      secretNames.has(plain(name)) ? censor(value) : withoutSecret(value, depth),
    ]),
  );
}

function withoutSecret(value: unknown, depth: number): unknown {
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  if (value instanceof Error) return describeError(value);
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (depth >= maxDepth) return "[too deep]";
  if (Array.isArray(value)) return value.map((item: unknown) => withoutSecret(item, depth + 1));
  return withoutSecrets({ ...value }, depth + 1);
}

/** An error that wraps another by text holds the same sections, and RPC URLs hold keys in their path. */
function scrubMessage(message: string): string {
  const [head = ""] = message.split(/\n\s*(?:Request |Raw Call |Contract Call|URL:|Details:)/);
  return scrubText(head.replaceAll(/\b(https?|wss?):\/\/(?:[^\s"'/@]*@)?([^\s"'/?]+)[^\s"']*/g, "$1://$2/…"));
}

/** The stack starts with the whole message: only the frames are kept. */
function stackFrames(error: Error): string {
  return (error.stack ?? "")
    .split("\n")
    .filter((line) => /^\s+at /.test(line))
    .join("\n");
}
