import { namespaceOf } from "../../../runtime/caip-namespace.ts";

/** A wallet's app, and the link that opens a page in the app's own browser. */
type WalletApp = { wallet: string; toHref: (page: string, url: URL) => string };

/** The wallet apps that the page names, by CAIP-2 namespace of the networks that they pay on. */
const apps: Readonly<Record<string, WalletApp>> = {
  eip155: {
    wallet: "MetaMask",
    // Not a part of the text: the host may be in upper case there.
    toHref: (_page, { host, pathname, search }) => `https://link.metamask.io/dapp/${host}${pathname}${search}`,
  },
  solana: {
    wallet: "Phantom",
    toHref: (page, { origin }) =>
      `https://phantom.app/ul/browse/${encodeURIComponent(page)}?ref=${encodeURIComponent(origin)}`,
  },
};

/** Lists the apps that can pay on one of these chains (CAIP-2), with their links to a page. */
export function listWalletApps(page: string, chains: readonly string[]): { wallet: string; href: string }[] {
  const namespaces = new Set(chains.map(namespaceOf));
  const url = new URL(page);
  return Object.entries(apps).flatMap(([namespace, { wallet, toHref }]) =>
    namespaces.has(namespace) ? [{ wallet, href: toHref(page, url) }] : [],
  );
}
