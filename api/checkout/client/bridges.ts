/** The two messages that wallets know; nothing else may be posted where they listen, and neither says who the buyer is. */
export type Message = { type: "IC_COMPLETE"; success: true } | { type: "IC_ERROR"; error: string };

type Posts = { postMessage: (message: unknown) => void };
type Bridged = Window & {
  ReactNativeWebView?: Posts;
  AndroidWallet?: { onDataCollectionComplete: (message: string) => void };
  webkit?: { messageHandlers?: { payDataCollectionComplete?: Posts; ReactNativeWebView?: Posts } };
};

/** Between the two forms that wallets on iOS expect, milliseconds: whoever knows the first has closed the page by then. */
const SECOND_FORM_MS = 1_500;

/**
 * Tells the wallet over every bridge there is, each by itself: one that throws keeps nothing from the others. Bridges are
 * called on their objects, because those that apps inject know no other way.
 * @param frames origins that may frame the page
 */
export function tellWallet(message: Message, frames: readonly string[]): void {
  const bridged = window as Bridged;
  const text = JSON.stringify(message);
  const handlers = bridged.webkit?.messageHandlers;
  const native = bridged.ReactNativeWebView;
  const calls = [
    () => (native ? native.postMessage(text) : handlers?.ReactNativeWebView?.postMessage(text)),
    () => bridged.AndroidWallet?.onDataCollectionComplete(text),
    () => handlers?.payDataCollectionComplete?.postMessage(message),
    // To whoever opened this window; the message is the same for everybody.
    () => (window.opener as Window | null)?.postMessage(text, "*"),
    ...findFramers(frames).map((origin) => () => window.parent.postMessage(text, origin)),
  ];
  for (const call of calls) attempt(call);
  if (handlers?.payDataCollectionComplete) tellAsText(handlers.payDataCollectionComplete, text);
}

/** The listed origins that are told: none in a window that nobody frames. */
function findFramers(listed: readonly string[]): readonly string[] {
  const { ancestorOrigins } = location as Location & { ancestorOrigins?: DOMStringList };
  return window.parent === window ? [] : pickFramers(listed, ancestorOrigins?.[0]);
}

/**
 * Of the listed origins the one that frames the page. Where the browser does not say who that is, all of them: it hands a
 * message to the one whose it is, and to no other.
 */
export const pickFramers = (listed: readonly string[], framer: string | undefined): readonly string[] =>
  framer === undefined ? listed : listed.filter((origin) => origin === framer);

/** Some guides for iOS read an object, others a text. */
function tellAsText(handler: Posts, text: string): void {
  const timer = setTimeout(() => {
    if (document.visibilityState === "visible") attempt(() => handler.postMessage(text));
  }, SECOND_FORM_MS);
  addEventListener("pagehide", () => clearTimeout(timer), { once: true });
}

function attempt(call: () => unknown): void {
  try {
    call();
  } catch {
    // The next one may work.
  }
}
