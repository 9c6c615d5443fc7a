type Channel = { postMessage: (message: string) => void };
type AppWindow = Window & {
  ReactNativeWebView?: Channel;
  webkit?: { messageHandlers?: { ReactNativeWebView?: Channel } };
};

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
