import type { FastifyReply } from "fastify";
import { styleHash } from "./style.ts";

/**
 * What a page may do: run our own script and nothing else, load its own pictures and wallets' (which are data), talk to
 * us, and be framed by nobody. Trusted Types: no script turns a text into markup.
 * @param opener whether the page may be told from, and tell, the window that opened it: wallets' pop-ups need it
 */
export function pageHeaders(publicUrl: string, opener: "popups" | "both" = "popups"): Record<string, string> {
  const policy = [
    "default-src 'none'",
    `script-src ${publicUrl}/assets/`,
    `style-src '${styleHash}'`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
    "report-to csp",
  ];
  return {
    "content-security-policy": policy.join("; "),
    "reporting-endpoints": `csp="${publicUrl}/csp-reports"`,
    "cross-origin-opener-policy": opener === "both" ? "unsafe-none" : "same-origin-allow-popups",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=()",
    "x-robots-tag": "noindex, nofollow",
    vary: "accept-language, accept-encoding",
  };
}

/** Puts them on an answer. */
export const setPageHeaders = (reply: FastifyReply, ...page: Parameters<typeof pageHeaders>): void =>
  void reply.headers(pageHeaders(...page));
