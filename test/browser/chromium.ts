import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

/** A browser's program and its additional environment variables. */
export type Program = { executablePath: string; env?: Record<string, string> };

const run = promisify(execFile);

/** The files that the package contains beside its headless shell: libraries and fonts that a bare machine lacks. */
const packed = ["chromium.br", "al2023.tar.br", "fonts.tar.br"];

/**
 * Finds the browser of the tests: the one that CHROMIUM names, otherwise the headless Chromium of a package, which this
 * unpacks the first time. Throws when the file that CHROMIUM names does not exist.
 */
export async function findChromium(): Promise<Program> {
  const { CHROMIUM } = process.env;
  if (CHROMIUM) {
    if (!existsSync(CHROMIUM)) throw new Error(`there is no browser at CHROMIUM: ${CHROMIUM}`);
    return { executablePath: CHROMIUM };
  }
  const folder = await unpackChromium();
  const env = { LD_LIBRARY_PATH: join(folder, "al2023", "lib"), FONTCONFIG_FILE: join(folder, "fonts.conf") };
  return { executablePath: join(folder, "chromium"), env };
}

/** Returns the folder with the unpacked package. When two processes unpack it at once, the first result is kept. */
async function unpackChromium(): Promise<string> {
  const home = resolve(createRequire(import.meta.url).resolve("@sparticuz/chromium"), "..", "..");
  const { version } = JSON.parse(await readFile(join(home, "package.json"), "utf8")) as { version: string };
  const kept = resolve(".local", "packages", `chromium-${version}`);
  if (existsSync(kept)) return kept;
  await mkdir(resolve(".local", "packages"), { recursive: true });
  const fresh = await mkdtemp(resolve(".local", "packages", "chromium-new-"));
  try {
    // The package unpacks into the temporary folder of its process.
    const files = packed.map((name) => join(home, "bin", name));
    const script = `import { inflate } from "@sparticuz/chromium";
      await Promise.all(${JSON.stringify(files)}.map(inflate));`;
    await run(process.execPath, ["--input-type=module", "--eval", script], { env: { ...process.env, TMPDIR: fresh } });
    await writeFile(join(fresh, "fonts.conf"), fontsOf(join(kept, "fonts")));
    await rename(fresh, kept).catch(() => undefined);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  return kept;
}

/** Fontconfig's file: only the package's fonts, so that text has the same width on every machine. */
const fontsOf = (folder: string) => `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${folder}</dir><cachedir>${folder}/cache</cachedir></fontconfig>
`;

/** Unpacks the browser before the first test file needs it. */
export async function setup(): Promise<void> {
  await findChromium();
}
