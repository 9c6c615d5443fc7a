/**
 * The two messages that wallets know. Nothing else may be posted to their listeners; neither message identifies the
 * buyer.
 */
export type Message = { type: "IC_COMPLETE"; success: true } | { type: "IC_ERROR"; error: string };

type Bridge = { postMessage: (message: unknown) => void };

declare global {
  /** The bridges that apps inject into their web views. */
  interface Window {
    ReactNativeWebView?: Bridge;
    AndroidWallet?: { onDataCollectionComplete: (message: string) => void };
    webkit?: { messageHandlers?: { payDataCollectionComplete?: Bridge; ReactNativeWebView?: Bridge } };
  }
}

/**
 * Delay between the two message forms that wallets on iOS expect, milliseconds. A wallet that knows the first has
 * closed the page by then.
 */
const SECOND_FORM_MS = 1_500;

/**
 * Sends the message to the wallet over every bridge that exists. Each call is independent: a bridge that throws does not
 * stop the others. Bridges are called as methods of their objects, because injected bridges work in no other way.
 * @param frames origins that may frame the page
 */
export function notifyWallet(message: Message, frames: readonly string[]): void {
  const text = JSON.stringify(message);
  const handlers = window.webkit?.messageHandlers;
  const native = window.ReactNativeWebView;
  const opener: Window | null = window.opener;
  const calls = [
    () => (native ? native.postMessage(text) : handlers?.ReactNativeWebView?.postMessage(text)),
    () => window.AndroidWallet?.onDataCollectionComplete(text),
    () => handlers?.payDataCollectionComplete?.postMessage(message),
    // The opener may be of any origin; the message holds nothing confidential.
    () => opener?.postMessage(text, "*"),
    ...listTargets(frames).map((origin) => () => window.parent.postMessage(text, origin)),
  ];
  for (const call of calls) attempt(call);
  if (handlers?.payDataCollectionComplete) notifyAsText(handlers.payDataCollectionComplete, text);
}

/** Returns the listed origins that get the message; none when the page is not framed. */
function listTargets(listed: readonly string[]): readonly string[] {
  const { ancestorOrigins }: { ancestorOrigins?: { readonly [index: number]: string } } = location;
  return window.parent === window ? [] : selectFramingOrigins(listed, ancestorOrigins?.[0]);
}

/**
 * Returns the listed origin that frames the page, or all of them when the browser does not name the framing origin: the
 * browser delivers a message only to a frame of the origin that it is addressed to.
 */
export const selectFramingOrigins = (listed: readonly string[], framer: string | undefined): readonly string[] =>
  framer === undefined ? listed : listed.filter((origin) => origin === framer);

/** Some guides for iOS read an object, others a JSON text: sends the text too, unless the page closes first. */
function notifyAsText(handler: Bridge, text: string): void {
  const timer = setTimeout(() => {
    if (document.visibilityState === "visible") attempt(() => handler.postMessage(text));
  }, SECOND_FORM_MS);
  addEventListener("pagehide", () => clearTimeout(timer), { once: true });
}

function attempt(call: () => unknown): void {
  try {
    call();
  } catch {
    // Another bridge may work.
  }
}
