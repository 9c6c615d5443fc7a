/** Members whose value never reaches a log line, unless it is a number or a boolean (`signed: true` is fine). */
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
] as const;

const plain = (name: string) => name.toLowerCase().replaceAll(/[_-]/g, "");
const secretNames = new Set(secretMembers.map(plain));
const maxDepth = 6;

/** Replaces a secret, without revealing its length. */
export function censor(value: unknown): unknown {
  return typeof value === "number" || typeof value === "boolean" || value == null ? value : "[redacted]";
}

/**
 * Removes from any text what looks like a signature, a raw transaction, one of our API keys or webhook secrets, a bearer
 * token or a URL's password. It catches what censoring by member name misses. Hashes and addresses (64 digits or fewer) stay.
 */
export function scrubText(text: string): string {
  return (
    text
      // The lookbehind prevents a new match attempt at each digit of a long run.
      .replaceAll(/(?<![0-9a-f])[0-9a-f]{65,}/gi, "[redacted hex]")
      .replaceAll(/\bsvc_(test_)?[A-Za-z0-9_-]{8,}/g, "svc_$1[redacted]")
      .replaceAll(/\bwhsec_[A-Za-z0-9+/=_-]{8,}/g, "whsec_[redacted]")
      .replaceAll(/\b(bearer|basic) [^\s"\\]{12,}/gi, "$1 [redacted]")
      .replaceAll(/(\w:\/\/)[^\s"\\/@]+@/g, "$1[redacted]@")
  );
}

/**
 * Returns what a log line may contain of an error. It is an allow-list, because errors of libraries contain request bodies,
 * SQL parameters and URLs with keys. viem puts the raw transaction into `message`, so its `shortMessage` is used.
 */
export function describeError(error: unknown, depth = 0): unknown {
  // Any value can be thrown or set as a cause.
  if (typeof error === "string") return scrubMessage(error);
  if (!(error instanceof Error)) return withoutSecret(error, depth);
  const code = errorCode(error);
  return {
    type: error.name,
    ...(code === undefined ? {} : { code }),
    message: errorMessage(error),
    stack: stackFrames(error),
    ...(error.cause !== undefined && depth < maxDepth ? { cause: describeError(error.cause, depth + 1) } : {}),
    ...(error instanceof AggregateError && depth < maxDepth
      ? { errors: error.errors.slice(0, 5).map((inner: unknown) => describeError(inner, depth + 1)) }
      : {}),
  };
}

/** Returns the code of a thrown error, such as ENOENT, or undefined when it has none. */
export function errorCode(error: unknown): string | number | undefined {
  const code: unknown = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" || typeof code === "number" ? code : undefined;
}

/** Returns one line about an error that is safe to show. */
export function errorMessage(error: Error): string {
  const short: unknown = "shortMessage" in error ? error.shortMessage : undefined;
  return scrubMessage(typeof short === "string" ? short : error.message);
}

/** Returns one line about a thrown value that is safe to show: its type, and its message without secrets. */
export function describeBriefly(thrown: unknown): string {
  return thrown instanceof Error ? `${thrown.name}: ${errorMessage(thrown)}` : scrubMessage(String(thrown));
}

/** Returns the same line with the error's code, if it has one: `ChainError [wrong_chain]: an RPC endpoint …`. */
export function describeWithCode(thrown: unknown): string {
  const code = errorCode(thrown);
  if (!(thrown instanceof Error) || code === undefined) return describeBriefly(thrown);
  return `${thrown.name} [${scrubMessage(String(code))}]: ${errorMessage(thrown)}`;
}

/** Returns a copy of log fields with their secrets censored, at any depth. */
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

/** Cuts off the sections in which viem repeats the request, and shortens URLs: paths of RPC URLs contain keys. */
function scrubMessage(message: string): string {
  const [head = ""] = message.split(/\n\s*(?:Request |Raw Call |Contract Call|URL:|Details:)/);
  return scrubText(head.replaceAll(/\b(https?|wss?):\/\/(?:[^\s"'/@]*@)?([^\s"'/?]+)[^\s"']*/g, "$1://$2/…"));
}

/** Returns the frames of an error's stack, without the message in front of them, which may contain a secret. */
export function stackFrames(error: Error): string {
  return (error.stack ?? "")
    .split("\n")
    .filter((line) => /^\s+at /.test(line))
    .join("\n");
}
