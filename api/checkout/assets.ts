import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { buildSync } from "esbuild";

/** A script as it is served: its name changes with its content, so a copy may be kept for ever. */
export type Asset = { file: string; integrity: string; plain: Buffer; br: Buffer; gzip: Buffer };

/** What browsers have that are not older than a phone of 2020. */
const TARGET = "es2020";

/** The pages' scripts, made once when the process starts; some ten milliseconds. */
export const assets = { checkout: build("checkout"), collect: build("collect") };

function build(name: string): Asset {
  const { outputFiles } = buildSync({
    entryPoints: [fileURLToPath(new URL(`client/${name}.ts`, import.meta.url))],
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
