import { keccak256, type TypedDataDefinition, toBytes } from "viem";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { parseTypedData } from "../../chains/evm/typed-data.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { listOptions } from "../options/list-options.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { OptionView, WalletAction } from "../views.ts";
import type { WalletResult } from "./wallet-results.ts";

/** The test wallet's input for a confirm: its signatures, or the option that needs buyer data first. */
export type TestWalletMove = { optionId: string } & ({ results: readonly WalletResult[] } | { needsData: true });

/**
 * Acts as a wallet for a payment of test mode: lists the options, chooses the first one that a plain key can sign, and
 * signs it. The confirm then verifies the signatures as usual. Refuses with `not_sandbox_api_key` in live mode, like
 * `listOptions`, and with `invalid_params` when no option can be signed.
 */
export async function signAsTestWallet(
  deps: PaymentDeps,
  { paymentId, mode, requester }: Omit<Parameters<typeof listOptions>[1], "accounts">,
): Promise<Result<TestWalletMove>> {
  if (mode !== "test")
    return refuse("not_sandbox_api_key", "only payments of test mode can be paid with a test wallet");
  const account = accountFor(paymentId);
  const chains = [...deps.chains.values()].filter(({ family }) => family === "evm");
  const accounts = chains.map(({ chain }) => `${chain}:${account.address}`);
  const listed = await listOptions(deps, { paymentId, mode, accounts, ...(requester && { requester }) });
  if (!listed.ok) return listed;
  for (const option of listed.value.options) {
    const toSign = listTypedData(option);
    if (!toSign) continue;
    const { id: optionId } = option;
    if (option.needsData) return done({ optionId, needsData: true });
    const signed = await Promise.all(toSign.map((data) => account.signTypedData(data)));
    return done({ optionId, results: signed.map((signature) => ({ type: "walletRpc", data: [signature] })) });
  }
  return refuse("invalid_params", "the test wallet cannot sign for any asset of this payment");
}

/**
 * Derives the account from the payment, so that buyer data given for it still applies at a retry. It never holds money.
 */
function accountFor(paymentId: string): PrivateKeyAccount {
  return privateKeyToAccount(keccak256(toBytes(`test wallet of ${paymentId}`)));
}

/** Returns the typed data of an option's actions; undefined when an action is not a signature. */
function listTypedData({ actions }: OptionView): TypedDataDefinition[] | undefined {
  const isSigning = (action: OptionView["actions"][number]): action is WalletAction =>
    "method" in action && action.method === "eth_signTypedData_v4";
  return actions.every(isSigning) ? actions.map(({ params }) => parseTypedData(String(params[1]))) : undefined;
}
