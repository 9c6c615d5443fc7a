import { WalletConnectPay } from "@walletconnect/pay";
import type { Shop } from "../../ops/local/wallet.ts";

/** What a wallet does with one action: gives a signature, or a transaction that it has signed. */
export type Sign = (action: { chainId: string; method: string; params: unknown[] }) => Promise<string>;

/**
 * Pays a link as a wallet app does, by the package that wallet apps are built with, as it is published. Gives how the
 * payment ended, as the wallet is told.
 */
export async function payByApp({ baseUrl, caller }: Shop, link: string, account: string, sign: Sign): Promise<string> {
  const sdk = new WalletConnectPay({ appId: caller.appId, baseUrl, logger: "silent" });
  const restore = keepAtHome(baseUrl);
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

/** The package tells its makers of what it does, and goes on where they cannot be reached. A test reaches nobody. */
function keepAtHome(baseUrl: string): () => void {
  const real = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    if (new URL(url).origin !== new URL(baseUrl).origin) throw new TypeError("a test asks nobody else");
    return real(input, init);
  };
  return () => {
    globalThis.fetch = real;
  };
}
