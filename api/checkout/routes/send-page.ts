import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Html } from "../../../runtime/html.ts";
import type { Asset } from "../release/script-bundles.ts";
import { pickEncoding } from "./pick-encoding.ts";

/** The maximum is 11. Quality 3 takes half as much processor time again, and saves 500 bytes of a page, from 7,100. */
const BROTLI_QUALITY = 1;
/** Size of the window as a power of two: a page is smaller than 32 KiB, and this encoder is slower with less than 64 KiB. */
const BROTLI_WINDOW = 16;
/** For the few clients without Brotli. */
const GZIP_LEVEL = 1;

const encodingOf = ({ headers }: FastifyRequest) => pickEncoding(String(headers["accept-encoding"] ?? ""));

/** Where a page is written before it is compressed, which takes half as long as to make a buffer for each. */
const written = Buffer.alloc(64 * 1024);
/** Bytes of a character of a JavaScript string in UTF-8, at most. */
const MOST_BYTES = 3;

/** Sends a compressed page. The caller has set the page's headers. */
export function sendPage(request: FastifyRequest, reply: FastifyReply, { markup }: Html): FastifyReply {
  const encoding = encodingOf(request);
  reply.type("text/html; charset=utf-8");
  if (encoding === undefined) return reply.send(Buffer.from(markup));
  reply.header("content-encoding", encoding);
  // A compressor that returns at once has read the buffer before the next page is written.
  const fits = markup.length * MOST_BYTES <= written.length;
  const plain = fits ? written.subarray(0, written.write(markup)) : Buffer.from(markup);
  // A tenth of a millisecond; a thread of the pool would cost more.
  return reply.send(encoding === "br" ? toBrotli(plain) : gzipSync(plain, { level: GZIP_LEVEL }));
}

function toBrotli(plain: Buffer): Buffer {
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
    [constants.BROTLI_PARAM_LGWIN]: BROTLI_WINDOW,
    [constants.BROTLI_PARAM_SIZE_HINT]: plain.byteLength,
  };
  return brotliCompressSync(plain, { params });
}

/** Sends a script. Its content never changes under its name, so caches keep it. */
export function sendAsset(request: FastifyRequest, reply: FastifyReply, asset: Asset): FastifyReply {
  const encoding = encodingOf(request);
  reply.type("text/javascript; charset=utf-8").headers({
    "cache-control": "public, max-age=31536000, immutable",
    vary: "accept-encoding",
    ...(encoding ? { "content-encoding": encoding } : {}),
  });
  return reply.send(asset[encoding ?? "plain"]);
}
