import { writeFileSync } from "node:fs";
import { everyAnswer } from "../security.ts";
import { assets } from "./assets.ts";
import { pageHeaders } from "./headers.ts";

/**
 * What this release serves: the headers of its pages, and what its scripts are. probe.ts compares a deployment with it, by
 * a page that nobody may frame: those of accounts that list origins differ in `frame-ancestors` and `x-frame-options`.
 */
export function describeRelease() {
  const publicUrl = "https://{checkout_host}";
  return {
    headers: {
      checkout: { ...everyAnswer, ...pageHeaders(publicUrl) },
      collect: { ...everyAnswer, ...pageHeaders(publicUrl, { opener: "both" }) },
    },
    scripts: Object.fromEntries(
      Object.entries(assets).map(([name, { file, integrity }]) => [name, { path: `/assets/${file}`, integrity }]),
    ),
  };
}

// `npm run pages:release` writes it down when a page has changed.
if (import.meta.main)
  writeFileSync(new URL("release.json", import.meta.url), `${JSON.stringify(describeRelease(), null, 2)}\n`);
