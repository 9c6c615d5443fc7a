type Channel = { postMessage: (message: string) => void };
type AppWindow = Window & {
  ReactNativeWebView?: Channel;
  AndroidWallet?: object;
  webkit?: { messageHandlers?: { ReactNativeWebView?: Channel; payDataCollectionComplete?: object } };
};

/** Shows the way back to the app, where an app's bridge says that this is its web view. */
export function offerApp(): void {
  const link = document.getElementById("app");
  const { ReactNativeWebView, AndroidWallet, webkit } = window as AppWindow;
  const handlers = webkit?.messageHandlers;
  const bridge =
    ReactNativeWebView ?? AndroidWallet ?? handlers?.ReactNativeWebView ?? handlers?.payDataCollectionComplete;
  if (link) link.hidden = !bridge;
}

let told = false;

/**
 * Tells the app whose web view this is how the payment ended, once, in the words that wallets know. Apps on iOS have the
 * channel under its own name only.
 */
export function tellApp(success: boolean, text: string): void {
  if (told) return;
  told = true;
  const { ReactNativeWebView, webkit } = window as AppWindow;
  const channel = ReactNativeWebView ?? webkit?.messageHandlers?.ReactNativeWebView;
  const message = success
    ? { type: "PAY_SUCCESS", success: true, message: text }
    : { type: "PAY_FAILURE", success: false, error: text };
  try {
    channel?.postMessage(JSON.stringify(message));
  } catch {
    // An app that cannot be told still has its own way to ask.
  }
}
