import type { FastifyReply } from "fastify";
import { styleHash } from "./style.ts";

/** In what a page differs from the others. */
export type PageRules = {
  /** Whether the page may be told from, and tell, the window that opened it: wallets' pop-ups need it. */
  opener?: "popups" | "both";
  /** Origins that may frame it all the same; all windows around it have to be of these. */
  frames?: readonly string[];
};

/**
 * What a page may do: run our own script and nothing else, load its own pictures and wallets' (which are data), talk to
 * us, and be framed by nobody. Trusted Types: no script turns a text into markup.
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
    // It knows no list, and browsers that know no list would refuse those on it too.
    ...(frames.length > 0 ? {} : { "x-frame-options": "DENY" }),
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=()",
    "x-robots-tag": "noindex, nofollow",
    vary: "accept-language, accept-encoding",
  };
}

/** Puts them on an answer, in place of those of another page. */
export function setPageHeaders(reply: FastifyReply, ...page: Parameters<typeof pageHeaders>): void {
  reply.removeHeader("x-frame-options").headers(pageHeaders(...page));
}
