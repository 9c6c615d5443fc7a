import type { Action } from "./api-types.ts";
import { type EvmCall, readEvmActions } from "./wallet/check-evm-actions.ts";
import { readExpected } from "./wallet/read-options.ts";
import type { TypedData } from "./wallet/typed-data.ts";
import { requireSafe, UnknownSendError } from "./wallet/wallet-errors.ts";
import type { WalletSigner } from "./wallet/wallet-signer.ts";

type Hash = `0x${string}`;

/** A local account of viem, such as `privateKeyToAccount` returns. It signs and sends nothing. */
type LocalAccount = { readonly address: string; readonly signTypedData: (typedData: never) => Promise<string> };

/** A wallet client of viem. With `publicActions` it also waits for the receipts of approvals. */
type WalletClient = {
  readonly account?: { readonly address: string } | undefined;
  readonly chain?: { readonly id: number } | undefined;
  readonly signTypedData: (typedData: never) => Promise<string>;
  readonly sendTransaction: (transaction: never) => Promise<Hash>;
  readonly waitForTransactionReceipt?: (args: never) => Promise<{ readonly status: string }>;
};

export type EvmSignerOptions = {
  /** The ids of the chains that the account may pay on; that of the wallet client when left out. */
  chains?: readonly number[];
  /** The address of Permit2, where a network has another one. */
  permit2?: string;
};

/** Permit2 has this address on nearly every chain. */
const PERMIT2 = "0x000000000022D473030F116dDEE9F6B43aC78BA3";

/**
 * Returns the signer of an EVM wallet: a local account, which pays by signatures alone, or a wallet client with an account,
 * which also sends transactions on its chain. A wallet client that is extended with `publicActions` can grant allowances too.
 * Before anything is signed, each action is checked against the option; see `readEvmActions`.
 */
export function evmSigner(
  wallet: LocalAccount | WalletClient,
  { chains, permit2 = PERMIT2 }: EvmSignerOptions = {},
): WalletSigner {
  // JavaScript would name the value, a secret, in its own error.
  if (typeof wallet !== "object" || wallet === null)
    throw new TypeError(
      "evmSigner: expected an account of viem, as privateKeyToAccount returns it, or a wallet client",
    );
  const client = "sendTransaction" in wallet ? wallet : undefined;
  const account = client ? client.account : (wallet as LocalAccount);
  const ids = chains ?? [client?.chain?.id ?? []].flat();
  if (!account) throw new TypeError("evmSigner: the wallet client has no account");
  if (ids.length === 0) throw new TypeError("evmSigner: name the chains, such as { chains: [8453] }");
  // The types of viem are not imported, so its functions are called with what they take at run time.
  const sign = wallet.signTypedData as unknown as (args: TypedData & { account: unknown }) => Promise<string>;
  const send = client?.sendTransaction as unknown as (args: EvmCall & { account: unknown }) => Promise<Hash>;
  const waitForReceipt = client?.waitForTransactionReceipt as unknown as
    | ((args: { hash: Hash }) => Promise<{ status: string }>)
    | undefined;
  const ownChain = client?.chain && `eip155:${client.chain.id}`;
  const accounts = ids.map((id) => `eip155:${id}:${account.address}`);
  // The case of an address is only a checksum.
  const owns = (given: string) => accounts.some((own) => own.toLowerCase() === given.toLowerCase());
  return {
    listAccounts: async () => accounts,
    owns,
    canExecute: (actions) =>
      actions.every((action, index) => {
        const { method, chain_id: chain } = rpcOf(action);
        if (method === "eth_signTypedData_v4") return true;
        const isLast = index === actions.length - 1;
        return method === "eth_sendTransaction" && chain === ownChain && (isLast || waitForReceipt !== undefined);
      }),
    async execute(actions, option) {
      const { chain } = readExpected(option);
      requireSafe(owns(option.account), "the option is of another account, or on another chain");
      const steps = readEvmActions(actions, option, { permit2, now: new Date() });
      const sends = steps.some(({ method }) => method === "send");
      requireSafe(!sends || chain === ownChain, "the wallet client is on another chain");
      const results: string[] = [];
      for (const [index, step] of steps.entries()) {
        if (step.method === "sign") {
          results.push(await sign({ ...step.data, account }));
          continue;
        }
        const isPayment = index === steps.length - 1;
        const hash = await send({ ...step.call, account }).catch((error: unknown) => {
          throw isPayment && !isDeclined(error) ? new UnknownSendError(option.id, error) : error;
        });
        results.push(hash);
        if (isPayment) continue;
        const { status } = (await waitForReceipt?.({ hash })) ?? {};
        if (status !== "success") throw new Error(`the approval ${hash} was reverted`);
      }
      return results;
    },
  };
}

const rpcOf = (action: Action): { method?: string; chain_id?: string } =>
  action.type === "walletRpc" ? action.data : {};

/** Returns true when a wallet says that its user has declined (EIP-1193), so that it has sent nothing. */
function isDeclined(error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  return Reflect.get(error, "code") === 4001 || isDeclined(Reflect.get(error, "cause"));
}
