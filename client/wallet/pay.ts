import type {
  Action,
  GatewayConfirmPaymentRequest,
  GetPaymentOptionsResponse,
  GetPaymentStatusResponse,
  PaymentInfo,
  PaymentOption,
} from "../api-types.ts";
import type { CallOptions } from "../http/transport.ts";
import { type HandInGateway, type HandInOptions, handIn } from "./hand-in.ts";
import { readActions, readOptions } from "./read-options.ts";
import { ConfirmError, NoPaymentOptionError, PaymentDeclinedError, requireSafe } from "./wallet-errors.ts";
import type { WalletRpc, WalletSigner } from "./wallet-signer.ts";

export type PayOptions = HandInOptions & {
  /**
   * Chooses among the options that a signer can pay, in the service's order. This is the place to ask the buyer: `info` says
   * who asks for how much. Without it any link that your wallet is given takes what it asks for. Nothing is paid when it
   * returns undefined.
   */
  choose: (
    options: readonly PaymentOption[],
    info: PaymentInfo,
  ) => PaymentOption | undefined | Promise<PaymentOption | undefined>;
  /** The buyer's data for an option that demands it (`collectData`). Without it such options are left out. */
  collectedData?: NonNullable<GatewayConfirmPaymentRequest["collectedData"]>;
};

/** The calls of the gateway that paying takes. */
type Gateway = HandInGateway & {
  options(
    payment: string,
    accounts: readonly string[],
    options: CallOptions & { includePaymentInfo: boolean },
  ): Promise<GetPaymentOptionsResponse>;
  fetch(
    payment: string,
    request: { optionId: string; data: string },
    options?: CallOptions,
  ): Promise<{ actions: readonly Action[] }>;
};

/**
 * Pays a payment: options, actions, confirm, and the wait until it is final. Returns the last status. `timeoutMs` begins when
 * the wallet has signed. Any error from then on is a `ConfirmError`; after any error before, except an `UnknownSendError`,
 * nothing is paid.
 */
export async function pay(
  gateway: Gateway,
  payment: string,
  signers: readonly WalletSigner[],
  { choose, collectedData, ...ending }: PayOptions,
): Promise<GetPaymentStatusResponse> {
  if (typeof choose !== "function") throw new TypeError("choose: expected a function that asks the buyer");
  const call: CallOptions = ending.signal ? { signal: ending.signal } : {};
  const accounts = await Promise.all(signers.map((signer) => signer.listAccounts()));
  const answer = await gateway.options(payment, accounts.flat(), { ...call, includePaymentInfo: true });
  const { info } = answer;
  const options = readOptions(answer.options);
  requireSafe(typeof info === "object" && info !== null, "the service does not say what is paid");
  const signerOf = ({ account }: PaymentOption) => signers.find((signer) => signer.owns(account));
  const payable = options.filter(
    (option) => signerOf(option)?.canExecute(option.actions) && (option.collectData === null || collectedData),
  );
  if (payable.length === 0) throw new NoPaymentOptionError(explain(options));
  const chosen = await choose(payable, info);
  if (!chosen) throw new PaymentDeclinedError("no option was chosen");
  const signer = payable.includes(chosen) ? signerOf(chosen) : undefined;
  if (!signer) throw new TypeError("choose: expected one of the options");
  const actions = await resolveActions(gateway, payment, chosen, call);
  ending.signal?.throwIfAborted();
  const results = await signer.execute(actions, chosen);
  const request: GatewayConfirmPaymentRequest = {
    optionId: chosen.id,
    results: results.map((result) => ({ type: "walletRpc", data: [result] })),
    ...(collectedData && chosen.collectData ? { collectedData } : {}),
  };
  return handIn(gateway, payment, request, ending).catch((error: unknown) => {
    throw new ConfirmError(request, error);
  });
}

function explain(options: readonly PaymentOption[]): string {
  if (options.length === 0) return "no account can pay: each lacks the funds or is on a network that is not taken";
  const needsData = options.every(({ collectData }) => collectData !== null);
  return needsData ? "each option demands data of the buyer" : "no signer can execute the actions of an option";
}

/** Returns the wallet's actions of an option; those that the service builds for the wallet are fetched. */
async function resolveActions(
  gateway: Gateway,
  payment: string,
  { id, actions }: PaymentOption,
  call: CallOptions,
): Promise<WalletRpc[]> {
  const resolved: WalletRpc[] = [];
  for (const action of actions) {
    const { actions: built } =
      action.type === "build"
        ? await gateway.fetch(payment, { optionId: id, data: action.data.data }, call)
        : { actions: [action] };
    for (const one of readActions(built)) {
      requireSafe(one.type === "walletRpc", "a built action is not built");
      resolved.push(one.data);
    }
  }
  return resolved;
}
