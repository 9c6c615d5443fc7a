/** The two messages that wallets know. Nothing else may be posted to their listeners; neither message identifies the buyer. */
export type Message = { type: "IC_COMPLETE"; success: true } | { type: "IC_ERROR"; error: string };

type MessagePort = { postMessage: (message: unknown) => void };
type Bridged = Window & {
  ReactNativeWebView?: MessagePort;
  AndroidWallet?: { onDataCollectionComplete: (message: string) => void };
  webkit?: { messageHandlers?: { payDataCollectionComplete?: MessagePort; ReactNativeWebView?: MessagePort } };
};

/** Delay between the two message forms that wallets on iOS expect, milliseconds. A wallet that knows the first has closed the page by then. */
const SECOND_FORM_MS = 1_500;

/**
 * Sends the message to the wallet over every bridge that exists. Each call is independent: a bridge that throws does not
 * stop the others. Bridges are called as methods of their objects, because injected bridges work in no other way.
 * @param frames origins that may frame the page
 */
export function notifyWallet(message: Message, frames: readonly string[]): void {
  const bridged = window as Bridged;
  const text = JSON.stringify(message);
  const handlers = bridged.webkit?.messageHandlers;
  const native = bridged.ReactNativeWebView;
  const calls = [
    () => (native ? native.postMessage(text) : handlers?.ReactNativeWebView?.postMessage(text)),
    () => bridged.AndroidWallet?.onDataCollectionComplete(text),
    () => handlers?.payDataCollectionComplete?.postMessage(message),
    // The opener may be of any origin; the message holds nothing confidential.
    () => (window.opener as Window | null)?.postMessage(text, "*"),
    ...listTargets(frames).map((origin) => () => window.parent.postMessage(text, origin)),
  ];
  for (const call of calls) attempt(call);
  if (handlers?.payDataCollectionComplete) notifyAsText(handlers.payDataCollectionComplete, text);
}

/** Returns the listed origins that get the message; none when the page is not framed. */
function listTargets(listed: readonly string[]): readonly string[] {
  const { ancestorOrigins } = location as Location & { ancestorOrigins?: DOMStringList };
  return window.parent === window ? [] : pickFramers(listed, ancestorOrigins?.[0]);
}

/**
 * Returns the listed origin that frames the page, or all of them when the browser does not name the framing origin: the
 * browser delivers a message only to a frame of the origin that it is addressed to.
 */
export const pickFramers = (listed: readonly string[], framer: string | undefined): readonly string[] =>
  framer === undefined ? listed : listed.filter((origin) => origin === framer);

/** Some guides for iOS read an object, others a JSON text: sends the text too, unless the page closes first. */
function notifyAsText(handler: MessagePort, text: string): void {
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
