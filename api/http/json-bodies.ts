import type { FastifyInstance } from "fastify";

/** Codes of errors of a body that cannot be read, by which the error handler finds the message. */
export type BodyErrorCode = "BODY_ENCODED" | "BODY_CHARSET" | "BODY_NOT_UTF8" | "BODY_FORBIDDEN_NAME";

const bodyError = (statusCode: 400 | 415, code: BodyErrorCode) => Object.assign(new Error(code), { statusCode, code });

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads JSON bodies. Accepts an empty body as no body, because many clients send a content type with every request; the
 * schema decides whether a body is required. Refuses text that is not UTF-8, which would be stored damaged.
 */
export function readJsonBodies(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeContentTypeParser("application/json");
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, body: Buffer, done) => {
    const { "content-encoding": encoding = "identity", "content-type": type = "" } = request.headers;
    if (encoding.toLowerCase() !== "identity") return done(bodyError(415, "BODY_ENCODED"));
    const charset = /;\s*charset="?([^";\s]+)/i.exec(type)?.[1] ?? "utf-8";
    if (!/^(utf-?8|us-ascii)$/i.test(charset)) return done(bodyError(415, "BODY_CHARSET"));
    if (body.length === 0) return done(null, undefined);
    const text = decode(body);
    if (text === undefined) return done(bodyError(400, "BODY_NOT_UTF8"));
    parse(request, text, (error, value) =>
      done(error && isJson(text) ? bodyError(400, "BODY_FORBIDDEN_NAME") : error, value),
    );
  });
}

function decode(body: Buffer): string | undefined {
  try {
    return utf8.decode(body);
  } catch {
    return undefined;
  }
}

/** Returns true for JSON, which the parser refuses only for a name that could change what an object inherits. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
