import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Asset } from "./assets.ts";
import type { Html } from "./html.ts";

const toBrotli = promisify(brotliCompress);
const toGzip = promisify(gzip);
/** Of 11; beyond this a page costs the processor more than the wire. */
const BROTLI_QUALITY = 5;

/** The packing that a browser takes; the better one first. */
function pickPacking({ headers }: FastifyRequest): "br" | "gzip" | undefined {
  const accepted = String(headers["accept-encoding"] ?? "");
  return (["br", "gzip"] as const).find((packing) => new RegExp(`\\b${packing}\\b(?!;q=0(\\.0+)?\\b)`).test(accepted));
}

/** Sends a page, packed. The headers of its kind stand on the reply already. */
export async function sendPage(request: FastifyRequest, reply: FastifyReply, page: Html): Promise<FastifyReply> {
  const plain = Buffer.from(page.markup);
  const packing = pickPacking(request);
  reply.type("text/html; charset=utf-8");
  if (packing === undefined) return reply.send(plain);
  reply.header("content-encoding", packing);
  const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY };
  return reply.send(packing === "br" ? await toBrotli(plain, { params }) : await toGzip(plain));
}

/** Sends a script that never changes under its name. */
export function sendAsset(request: FastifyRequest, reply: FastifyReply, asset: Asset): FastifyReply {
  const packing = pickPacking(request);
  reply.type("text/javascript; charset=utf-8").headers({
    "cache-control": "public, max-age=31536000, immutable",
    vary: "accept-encoding",
    ...(packing ? { "content-encoding": packing } : {}),
  });
  return reply.send(asset[packing ?? "plain"]);
}
