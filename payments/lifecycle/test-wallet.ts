import { parseAccountId } from "../../chains/caip.ts";
import type { Chain } from "../../chains/chain.ts";
import { getTransferDriver } from "../../transfers/find-transfer-driver.ts";
import type { TestWallet } from "../../transfers/wallet-driver.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { listOptions } from "../options/list-options.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { WalletResult } from "./wallet-results.ts";

/** The test wallet's input for a confirm: its signatures, or the option that needs buyer data first. */
export type TestWalletMove = { optionId: string } & ({ results: readonly WalletResult[] } | { needsData: true });

/**
 * Acts as a wallet for a payment of test mode: lists the options, chooses the first one that the wallet can sign, and
 * signs it. The confirm then verifies the signatures as usual. Refuses with `not_sandbox_api_key` in live mode, like
 * `listOptions`, and with `invalid_params` when no option can be signed.
 */
export async function signAsTestWallet(
  deps: PaymentDeps,
  { paymentId, mode, requester }: Omit<Parameters<typeof listOptions>[1], "accounts">,
): Promise<Result<TestWalletMove>> {
  if (mode !== "test")
    return refuse("not_sandbox_api_key", "only payments of test mode can be paid with a test wallet");
  const wallets = new Map([...deps.chains.values()].map((chain) => [chain.chain, openWallet(chain, paymentId)]));
  const accounts = [...wallets].flatMap(([chain, wallet]) => (wallet ? `${chain}:${wallet.address}` : []));
  const listed = await listOptions(deps, { paymentId, mode, accounts, ...(requester && { requester }) });
  if (!listed.ok) return listed;
  for (const option of listed.value.options) {
    const wallet = wallets.get(parseAccountId(option.account)?.chain ?? "");
    const actions = option.actions.filter((action) => "method" in action);
    const signed = actions.length === option.actions.length ? await wallet?.sign(actions) : undefined;
    if (!signed) continue;
    const { id: optionId } = option;
    if (option.needsData) return done({ optionId, needsData: true });
    return done({ optionId, results: signed.map((signature) => ({ type: "walletRpc", data: [signature] })) });
  }
  return refuse("invalid_params", "the test wallet cannot sign for any asset of this payment");
}

/** The wallet is derived from the payment, so that buyer data given for it still applies at a retry. */
function openWallet(chain: Chain, paymentId: string): TestWallet | undefined {
  return getTransferDriver(chain).wallets.openTestWallet(`test wallet of ${paymentId}`);
}
