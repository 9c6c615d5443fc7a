import { z } from "zod";

/** Schemes of known wallet apps, as their own documentation and stores name them: the default of `APP_SCHEMES`. */
const walletSchemes = [
  "metamask",
  "trust",
  "rainbow",
  "cbwallet",
  "phantom",
  "solflare",
  "backpack",
  "uniswap",
  "zerion",
  "okx",
  "okex",
  "bitkeep",
  "tpoutside",
  "imtokenv2",
  "onekey-wallet",
  "safe",
  "ledgerlive",
  "exodus",
  "argent",
  "bybitapp",
  "bnc",
];

/**
 * Schemes that systems, browsers and payment standards act on: a link with one of them does something else than bring an
 * app to the front, so an operator cannot allow it either.
 */
const reserved =
  /^(https?|wss?|s?ftp|file|javascript|vbscript|data|blob|about|filesystem|view-source|intent|android-app|market|tel|sms|mms|facetime(-audio)?|mailto|wc|ethereum|solana|bitcoin|lightning|itms.*|ms-.*|microsoft-.*|x-.*|googlechromes?|chrome.*|firefox.*|brave.*|opera.*|shortcuts|prefs|app-prefs|search-ms)$/;

/** A comma list of schemes of apps that buyers may be led back to, in lower case. */
export const appSchemes = z
  .string()
  .default(walletSchemes.join(","))
  .transform((text, context): ReadonlySet<string> => {
    const schemes = text.split(",").flatMap((part) => part.trim().toLowerCase() || []);
    if (schemes.every((scheme) => /^[a-z][a-z0-9+.-]*$/.test(scheme) && !reserved.test(scheme)))
      return new Set(schemes);
    context.addIssue(
      "expected schemes of apps by commas, such as mywallet,otherwallet; none that a system acts on itself",
    );
    return z.NEVER;
  });
