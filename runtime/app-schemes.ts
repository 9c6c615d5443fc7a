import { z } from "zod";

/** URL schemes of known wallet apps, from their documentation and app stores: the default of `APP_SCHEMES`. */
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
 * Schemes that operating systems, browsers and payment standards handle themselves. A link with one of them does more than
 * bring an app to the front, so operators cannot allow them.
 */
const reserved =
  /^(https?|wss?|s?ftp|file|javascript|vbscript|data|blob|about|filesystem|view-source|intent|android-app|market|tel|sms|mms|facetime(-audio)?|mailto|wc|ethereum|solana|bitcoin|lightning|itms.*|ms-.*|microsoft-.*|x-.*|googlechromes?|chrome.*|firefox.*|brave.*|opera.*|shortcuts|prefs|app-prefs|search-ms)$/;

/** Parses a comma-separated list of app schemes that the checkout page may return buyers to, in lower case. */
export const appSchemes = z
  .string()
  .default(walletSchemes.join(","))
  .transform((text, context): ReadonlySet<string> => {
    const schemes = text.split(",").flatMap((part) => part.trim().toLowerCase() || []);
    if (schemes.every((scheme) => /^[a-z][a-z0-9+.-]*$/.test(scheme) && !reserved.test(scheme)))
      return new Set(schemes);
    context.addIssue(
      "expected a comma-separated list of app schemes, such as mywallet,otherwallet, without schemes that the system handles",
    );
    return z.NEVER;
  });
