import type { PaymentOption } from "../api-types.ts";
import { readExpected } from "./read-options.ts";
import { readSolanaTransaction, type SolanaInstruction, type SolanaTransaction } from "./solana-message.ts";
import { requireSafe } from "./wallet-errors.ts";
import type { WalletRpc } from "./wallet-signer.ts";

const tokenPrograms = ["TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA", "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb"];
/** The instruction of the token programs that names the token and its decimals besides the amount. */
const TRANSFER_CHECKED = 12;
const SYSTEM_PROGRAM = "11111111111111111111111111111111";
/** The instruction of the System program that makes a transaction valid until a durable nonce is advanced. */
const ADVANCE_NONCE_ACCOUNT = 4;

/**
 * Reads the transaction of a Solana option, and throws an `UnsafeActionError` when it does anything else with the payer's
 * account than to pay: the payer is a signer and does not pay the fee, one instruction moves exactly the option's amount of
 * its token on the payer's authority, no other instruction names the payer or the token account that the money leaves, and
 * the transaction expires with its blockhash. Not checked are the receiver, because the wallet does not know the merchant's
 * accounts, and the cluster: a transaction names none, only the service says which one it is for.
 */
export function readSolanaAction(
  actions: readonly WalletRpc[],
  option: PaymentOption,
): { bytes: Uint8Array<ArrayBuffer>; transaction: SolanaTransaction; signer: number } {
  const { chain, payer, token, amount: asked } = readExpected(option);
  const [action, ...others] = actions;
  requireSafe(action !== undefined && others.length === 0, "the option has not exactly one action");
  requireSafe(action?.chain_id === chain, `the action is not for ${chain}`);
  requireSafe(action.method === "solana_signTransaction", "the wallet does not execute the method of the action");
  const [request] = Array.isArray(action.params) ? action.params : [];
  const { bytes, transaction } = read(request?.transaction);
  const { accounts, signers, instructions } = transaction;
  const signer = accounts.indexOf(payer);
  requireSafe(signer >= 0 && signer < signers, "the transaction does not ask for this account's signature");
  requireSafe(signer !== 0, "the account would pay the transaction's fee");
  const own = instructions.filter(({ accounts }) => accounts.includes(signer));
  const [transfer] = own;
  requireSafe(transfer !== undefined && own.length === 1, "not exactly one instruction uses the account");
  const [source, mint, , authority] = transfer.accounts;
  requireSafe(
    tokenPrograms.includes(transfer.program) && transfer.data[0] === TRANSFER_CHECKED && transfer.data.length === 10,
    "the instruction that uses the account is no transfer of a token",
  );
  requireSafe(
    transfer.accounts.length === 4 && authority === signer,
    "the account is not the authority of the transfer",
  );
  requireSafe(accounts[mint ?? -1] === token, "the transfer is of another token");
  const amount = new DataView(transfer.data.buffer, transfer.data.byteOffset).getBigUint64(1, true);
  requireSafe(amount === asked, "the transfer is of another amount");
  const further = instructions.filter((one) => one !== transfer && one.accounts.includes(source ?? -1));
  requireSafe(further.length === 0, "another instruction uses the account's tokens");
  requireSafe(!instructions.some(isNonceAdvance), "the transaction would never expire");
  return { bytes, transaction, signer };
}

const isNonceAdvance = ({ program, data }: SolanaInstruction): boolean =>
  program === SYSTEM_PROGRAM && data[0] === ADVANCE_NONCE_ACCOUNT;

function read(base64: unknown): { bytes: Uint8Array<ArrayBuffer>; transaction: SolanaTransaction } {
  try {
    const bytes = Uint8Array.from(atob(String(base64)), (character) => character.charCodeAt(0));
    return { bytes, transaction: readSolanaTransaction(bytes) };
  } catch {
    requireSafe(false, "the transaction is not readable");
  }
}
