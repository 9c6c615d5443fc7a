import type { Action } from "./api-types.ts";
import { encodeBase58 } from "./wallet/base58.ts";
import { readSolanaAction } from "./wallet/check-solana-actions.ts";
import { readExpected } from "./wallet/read-options.ts";
import { requireSafe } from "./wallet/wallet-errors.ts";
import type { WalletSigner } from "./wallet/wallet-signer.ts";

/** A public key of `@solana/web3.js`, or its text. */
type Address = string | { readonly toBase58: () => string };

/** A key pair as `@solana/web3.js` makes it: the seed and the public key, 64 bytes. */
type Keypair = { readonly secretKey: Uint8Array };

/** A wallet that signs a serialized transaction and returns it with its signature. */
type SolanaWallet = {
  readonly publicKey: Address;
  readonly signTransaction: (transaction: Uint8Array) => Promise<Uint8Array>;
};

export type SolanaSignerOptions = {
  /** The cluster that the account may pay on (CAIP-2); mainnet when left out. */
  chain?: string;
};

const MAINNET = "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp";

/**
 * Returns the signer of a Solana wallet: a key pair, or a wallet that signs transactions. The service sends the transaction
 * and pays its fee. Before it is signed, it is checked against the option; see `readSolanaAction`.
 *
 * A Solana transaction does not name its cluster, so that no check can see for which one it is: use a key for one cluster only.
 * Otherwise a service that is not honest gets a transaction of mainnet signed as one of devnet.
 */
export function solanaSigner(
  wallet: Keypair | SolanaWallet,
  { chain = MAINNET }: SolanaSignerOptions = {},
): WalletSigner {
  // JavaScript would name the value, a secret, in its own error.
  if (typeof wallet !== "object" || wallet === null)
    throw new TypeError("solanaSigner: expected a key pair of @solana/web3.js, or a wallet that signs transactions");
  const address = "signTransaction" in wallet ? toText(wallet.publicKey) : encodeBase58(wallet.secretKey.subarray(32));
  const own = `${chain}:${address}`;
  return {
    listAccounts: async () => [own],
    owns: (account) => account === own,
    canExecute: (actions) => actions.every(isTransaction),
    async execute(actions, option) {
      const { payer, chain: asked } = readExpected(option);
      requireSafe(payer === address && asked === chain, "the option is of another account");
      const { bytes, transaction, signer } = readSolanaAction(actions, option);
      if ("signTransaction" in wallet) return [toBase64(await wallet.signTransaction(bytes))];
      bytes.set(await signMessage(wallet, transaction.message), transaction.signaturesAt + 64 * signer);
      return [toBase64(bytes)];
    },
  };
}

const isTransaction = (action: Action): boolean =>
  action.type === "build" || action.data.method === "solana_signTransaction";

const toText = (address: Address): string => (typeof address === "string" ? address : address.toBase58());

/** What precedes the seed in a PKCS #8 file of an Ed25519 key (RFC 8410). */
const PKCS8_HEAD = [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

async function signMessage({ secretKey }: Keypair, message: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const encoded = Uint8Array.from([...PKCS8_HEAD, ...secretKey.subarray(0, 32)]);
  const key = await crypto.subtle.importKey("pkcs8", encoded, "Ed25519", false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("Ed25519", key, message));
}

const toBase64 = (bytes: Uint8Array): string => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
