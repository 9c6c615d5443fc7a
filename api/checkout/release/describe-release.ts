import { writeFileSync } from "node:fs";
import { releaseFile } from "../../../runtime/released-pages/release-file.ts";
import { securityHeaders } from "../../http/security-headers.ts";
import { pageHeaders } from "../routes/page-headers.ts";
import { assets } from "./script-bundles.ts";

/**
 * Returns what this release serves: the headers of its pages, and the paths and hashes of its scripts. The check of the
 * released pages compares a deployment with it. The headers are those of a page that no origin may frame: pages of accounts
 * that list origins differ in `frame-ancestors` and `x-frame-options`.
 */
export function describeRelease() {
  const publicUrl = "https://{checkout_host}";
  return {
    headers: {
      checkout: { ...securityHeaders, ...pageHeaders(publicUrl) },
      collect: { ...securityHeaders, ...pageHeaders(publicUrl, { opener: "both" }) },
    },
    scripts: Object.fromEntries(
      Object.entries(assets).map(([name, { file, integrity }]) => [name, { path: `/assets/${file}`, integrity }]),
    ),
  };
}

// `npm run pages:release` writes the file; run it after a change of a page.
if (import.meta.main) writeFileSync(releaseFile, `${JSON.stringify(describeRelease(), null, 2)}\n`);
