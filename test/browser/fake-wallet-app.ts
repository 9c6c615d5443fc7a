import { WalletConnectPay } from "@walletconnect/pay";
import type { Shop } from "../../local/buyer-client.ts";

/** Performs one action of a wallet: returns a signature, or a signed transaction. */
export type Sign = (action: { chainId: string; method: string; params: unknown[] }) => Promise<string>;

/**
 * Pays a link, or a payment by its id, with the published SDK of wallet apps. Returns the final status that the SDK
 * reports.
 * @param credentials what the SDK authenticates with; default: the app id of the shop
 */
export async function payByApp(
  { baseUrl, caller }: Shop,
  link: string,
  account: string,
  sign: Sign,
  credentials: { appId: string } | { apiKey: string } = { appId: caller.appId },
): Promise<string> {
  const sdk = new WalletConnectPay({ ...credentials, baseUrl, logger: "silent" });
  const restore = blockTelemetry(baseUrl);
  try {
    const { paymentId, options } = await sdk.getPaymentOptions({ paymentLink: link, accounts: [account] });
    const optionId = options[0]?.id ?? "";
    const signatures: string[] = [];
    for (const { walletRpc } of await sdk.getRequiredPaymentActions({ paymentId, optionId }))
      signatures.push(await sign({ ...walletRpc, params: JSON.parse(walletRpc.params) as unknown[] }));
    return (await sdk.confirmPayment({ paymentId, optionId, signatures })).status;
  } finally {
    restore();
  }
}

/** Blocks the SDK's telemetry, and returns a function that restores fetch. The SDK works without its telemetry. */
function blockTelemetry(baseUrl: string): () => void {
  const real = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    if (new URL(url).origin !== new URL(baseUrl).origin) throw new TypeError("tests allow no requests to other hosts");
    return real(input, init);
  };
  return () => {
    globalThis.fetch = real;
  };
}
