import type { FastifyReply } from "fastify";
import { styleHash } from "../pages/style.ts";

/** The headers in which pages differ. */
type PageRules = {
  /** `both` keeps the reference between the page and the window that opened it, which wallets' pop-ups need. */
  opener?: "popups" | "both";
  /** Origins that may frame the page. Every ancestor frame must have one of them. */
  frames?: readonly string[];
};

/**
 * Returns the headers of a page. The policy allows the service's own scripts, images of the service and data URIs (wallets'
 * icons), requests to the service, and no framing beyond `frames`. Trusted Types keep scripts from turning text into markup.
 */
export function pageHeaders(
  publicUrl: string,
  { opener = "popups", frames = [] }: PageRules = {},
): Record<string, string> {
  const policy = [
    "default-src 'none'",
    `script-src ${publicUrl}/assets/`,
    `style-src '${styleHash}'`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    `frame-ancestors ${frames.length > 0 ? frames.join(" ") : "'none'"}`,
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
    "report-to csp",
  ];
  return {
    "content-security-policy": policy.join("; "),
    "reporting-endpoints": `csp="${publicUrl}/csp-reports"`,
    "cross-origin-opener-policy": opener === "both" ? "unsafe-none" : "same-origin-allow-popups",
    // X-Frame-Options takes no list: sent beside one, it would block the listed origins in browsers that read only it.
    ...(frames.length > 0 ? {} : { "x-frame-options": "DENY" }),
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=()",
    "x-robots-tag": "noindex, nofollow",
    vary: "accept-language, accept-encoding",
  };
}

/** Sets the page headers on a reply and removes those of another page. */
export function setPageHeaders(reply: FastifyReply, headers: ReturnType<typeof pageHeaders>): void {
  reply.removeHeader("x-frame-options").headers(headers);
}
