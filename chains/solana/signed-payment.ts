import { TokenInstruction } from "@solana/spl-token";
import type { KnownMovement } from "../final-transaction.ts";
import { MEMO_PROGRAM, type SplTransfer, tokenProgramIds } from "./build-payment.ts";
import { compareTransaction } from "./compare-transaction.ts";
import { openVerifier } from "./ed25519-keys.ts";
import type { SolanaChain, SolanaToken } from "./open-solana-chain.ts";
import { findTransferIndex } from "./treasury-movements.ts";
import { firstSignature, type ParsedTransaction, parseTransaction } from "./wire-format.ts";

/** A payment into the treasury that signed bytes make if they succeed. The slot is not part of them. */
export type SignedPayment = { token: SolanaToken; movement: Omit<KnownMovement, "blockNumber"> };

const { token: TOKEN } = tokenProgramIds;

/**
 * Returns the payment that a transaction makes if it succeeds, by its signed bytes, which any caller may have supplied: a
 * relayer of the networks file has signed them, and that signature is the transaction's hash. Returns undefined for bytes
 * that do not show the whole effect: any other transaction than the one that we ask buyers for, and one in Token-2022, whose
 * issuer can keep a fee. Pure.
 */
export function readSignedPayment(chain: SolanaChain, hash: string, bytes: Uint8Array): SignedPayment | undefined {
  const parsed = parseTransaction(bytes);
  if ("error" in parsed || firstSignature(bytes) !== hash || !chain.lanes.includes(parsed.feePayer)) return undefined;
  const described = describePayment(chain, parsed);
  if (!described) return undefined;
  const { token, transfer } = described;
  const limits = { maxFee: chain.network.maxPriorityFee, ours: chain.ours };
  if (compareTransaction(parsed, transfer, limits).length > 0) return undefined;
  if (!isSignedByRelayer(parsed)) return undefined;
  const { payer, receiver, amount, memo } = transfer;
  const logIndex = findTransferIndex(parsed, memo);
  const movement = { txHash: hash, logIndex, token: token.token, payer, receiver, amount, authorizationNonce: memo };
  return { token, movement };
}

/** Functions that verify a relayer's signatures, by its address. The networks file has few of them. */
const verifiers = new Map<string, ReturnType<typeof openVerifier>>();

/** Returns true if the fee payer, which is a relayer of the networks file, has signed the transaction. */
function isSignedByRelayer({ feePayer, message, signatures }: ParsedTransaction): boolean {
  const verify = verifiers.get(feePayer) ?? openVerifier(feePayer);
  verifiers.set(feePayer, verify);
  return verify(message, signatures[0] ?? new Uint8Array());
}

/** Returns the transfer that a transaction would have to be; the comparison decides whether it is. */
function describePayment(
  chain: SolanaChain,
  { instructions, accounts, feePayer }: ParsedTransaction,
): { token: SolanaToken; transfer: SplTransfer } | undefined {
  const moving = instructions.find(
    ({ program, data }) => program === TOKEN && data[0] === TokenInstruction.TransferChecked && data.length === 10,
  );
  const memo = instructions.find(({ program }) => program === MEMO_PROGRAM);
  if (!moving || !memo) return undefined;
  const [, mint, , payer] = moving.accounts.map((at) => accounts[at]?.address);
  const token = [...chain.tokens.values()].find((one) => one.token === mint && one.program === "token");
  const amount = Buffer.from(moving.data).readBigUInt64LE(1);
  if (!token || payer === undefined || amount === 0n) return undefined;
  const { token: mintAddress, program, decimals } = token;
  const text = Buffer.from(memo.data).toString("utf8");
  const parties = { feePayer, payer, receiver: chain.treasury };
  const transfer = { ...parties, mint: mintAddress, program, decimals, amount, memo: text, makeReceiverAccount: false };
  return { token, transfer };
}
