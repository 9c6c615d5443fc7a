import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Html } from "../pages/html.ts";
import type { Asset } from "../release/script-bundles.ts";

const toBrotli = promisify(brotliCompress);
const toGzip = promisify(gzip);
/** The maximum is 11. A higher quality costs more processor time than it saves on the network. */
const BROTLI_QUALITY = 5;

/** Returns the best encoding that the browser accepts. */
function pickEncoding({ headers }: FastifyRequest): "br" | "gzip" | undefined {
  const accepted = String(headers["accept-encoding"] ?? "");
  return (["br", "gzip"] as const).find((encoding) =>
    new RegExp(`\\b${encoding}\\b(?!;q=0(\\.0+)?\\b)`).test(accepted),
  );
}

/** Sends a compressed page. The caller has set the page's headers. */
export async function sendPage(request: FastifyRequest, reply: FastifyReply, page: Html): Promise<FastifyReply> {
  const plain = Buffer.from(page.markup);
  const encoding = pickEncoding(request);
  reply.type("text/html; charset=utf-8");
  if (encoding === undefined) return reply.send(plain);
  reply.header("content-encoding", encoding);
  const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY };
  return reply.send(encoding === "br" ? await toBrotli(plain, { params }) : await toGzip(plain));
}

/** Sends a script. Its content never changes under its name, so caches keep it. */
export function sendAsset(request: FastifyRequest, reply: FastifyReply, asset: Asset): FastifyReply {
  const encoding = pickEncoding(request);
  reply.type("text/javascript; charset=utf-8").headers({
    "cache-control": "public, max-age=31536000, immutable",
    vary: "accept-encoding",
    ...(encoding ? { "content-encoding": encoding } : {}),
  });
  return reply.send(asset[encoding ?? "plain"]);
}
