import { namespaceOf } from "../../../runtime/caip-namespace.ts";

/** A wallet's app, and the link that opens a page in the app's own browser. */
type WalletApp = { wallet: string; toHref: (page: string) => string };

/** The wallet apps that the page names, by CAIP-2 namespace of the networks that they pay on. */
const apps: Readonly<Record<string, WalletApp>> = {
  eip155: {
    wallet: "MetaMask",
    toHref: (page) => `https://link.metamask.io/dapp/${page.slice(page.indexOf(new URL(page).host))}`,
  },
  solana: {
    wallet: "Phantom",
    toHref: (page) =>
      `https://phantom.app/ul/browse/${encodeURIComponent(page)}?ref=${encodeURIComponent(new URL(page).origin)}`,
  },
};

/** Lists the apps that can pay on one of these chains (CAIP-2), with their links to a page. */
export function listWalletApps(page: string, chains: readonly string[]): { wallet: string; href: string }[] {
  const namespaces = new Set(chains.map(namespaceOf));
  return Object.entries(apps).flatMap(([namespace, { wallet, toHref }]) =>
    namespaces.has(namespace) ? [{ wallet, href: toHref(page) }] : [],
  );
}
