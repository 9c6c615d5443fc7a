/** Shows the link back to the app when an app's bridge shows that this page runs in its web view. */
export function showAppLink(): void {
  const link = document.getElementById("app");
  const { ReactNativeWebView, AndroidWallet, webkit } = window;
  const handlers = webkit?.messageHandlers;
  const bridge =
    ReactNativeWebView ?? AndroidWallet ?? handlers?.ReactNativeWebView ?? handlers?.payDataCollectionComplete;
  if (link) link.hidden = !bridge;
}

let notified = false;

/**
 * Notifies the app whose web view this is, once, how the payment ended, in the message format that wallets know. Apps on
 * iOS provide the channel only below `webkit.messageHandlers`.
 */
export function notifyApp(success: boolean, text: string): void {
  if (notified) return;
  notified = true;
  const { ReactNativeWebView, webkit } = window;
  const channel = ReactNativeWebView ?? webkit?.messageHandlers?.ReactNativeWebView;
  const message = success
    ? { type: "PAY_SUCCESS", success: true, message: text }
    : { type: "PAY_FAILURE", success: false, error: text };
  try {
    channel?.postMessage(JSON.stringify(message));
  } catch {
    // An app that does not get the message can still poll the status itself.
  }
}
