import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { buildSync } from "esbuild";

/** A script as it is served. Its file name holds a hash of its content, so caches may keep it for ever. */
export type Asset = { file: string; integrity: string; plain: Buffer; br: Buffer; gzip: Buffer };

/** Browsers of phones from 2020 support this version. */
const TARGET = "es2020";

/**
 * The scripts of the pages. A process that runs the sources bundles and compresses them when it starts. A build contains the
 * result of this module, not the module (see scripts/build.ts).
 */
export const assets = { checkout: build("checkout"), collect: build("collect") };

function build(name: string): Asset {
  const { outputFiles } = buildSync({
    entryPoints: [fileURLToPath(new URL(`../client/${name}.ts`, import.meta.url))],
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: TARGET,
    legalComments: "none",
  });
  const plain = Buffer.from(outputFiles[0]?.contents ?? []);
  const hash = createHash("sha256").update(plain).digest();
  return {
    file: `${name}.${hash.toString("hex").slice(0, 16)}.js`,
    integrity: `sha256-${hash.toString("base64")}`,
    plain,
    br: brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }),
    gzip: gzipSync(plain, { level: 9 }),
  };
}
