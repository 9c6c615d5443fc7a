import type { PaymentOption } from "../api-types.ts";
import { type Expected, readExpected } from "./read-options.ts";
import { readTypedData, type TypedData, toNumber, toObject } from "./typed-data.ts";
import { requireSafe } from "./wallet-errors.ts";
import type { WalletRpc } from "./wallet-signer.ts";

/** A transaction that a wallet sends. */
export type EvmCall = { to: `0x${string}`; data: `0x${string}`; value: bigint };

export type EvmAction = { method: "sign"; data: TypedData } | { method: "send"; call: EvmCall };

/**
 * How long a signature may be valid, seconds. The service's are valid for as long as their payment, which lives a day at most,
 * and until its chain is final: less than an hour. The second hour is for clocks that are wrong.
 */
const MAX_VALID_S = 26 * 60 * 60;

/** What the checks compare; `until` is the last time (Unix seconds) until which a signature may be valid. */
type Terms = Expected & { chainId: bigint; permit2: string; until: bigint };

/**
 * Reads the actions of an EVM option, and throws an `UnsafeActionError` when one of them does not belong to paying it. Checked
 * are the chain, the payer, the token and the amount of each authorization, permit, approval and transfer; that signatures
 * end within 26 hours; that allowances are for Permit2, and not above the amount; that no native coin is sent; and that
 * nothing follows the payment. Not checked is the receiver: the wallet does not know the merchant's accounts.
 */
export function readEvmActions(
  actions: readonly WalletRpc[],
  option: PaymentOption,
  { permit2, now }: { permit2: string; now: Date },
): EvmAction[] {
  const expected = readExpected(option);
  const { chain, reference } = expected;
  requireSafe(/^\d+$/.test(reference), `${chain} is no EVM chain`);
  const until = BigInt(Math.floor(now.getTime() / 1000) + MAX_VALID_S);
  const terms = { ...expected, chainId: BigInt(reference), permit2, until };
  requireSafe(actions.length > 0, "the option has no action");
  for (const action of actions) requireSafe(action?.chain_id === chain, `an action is not for ${chain}`);
  const parsed = actions.map((action) => readAction(action, terms));
  const payment = parsed.at(-1);
  const usesPermit2 = payment?.method === "sign" && payment.data.primaryType === "PermitTransferFrom";
  if (payment?.method === "sign") checkPayment(payment.data, terms);
  if (payment?.method === "send") checkTransfer(payment.call, terms);
  for (const step of parsed.slice(0, -1)) {
    requireSafe(usesPermit2, "an action other than the payment is not an allowance for it");
    if (step.method === "sign") checkPermit(step.data, terms);
    else checkApproval(step.call, terms);
  }
  return parsed;
}

function readAction({ method, params }: WalletRpc, terms: Terms): EvmAction {
  requireSafe(Array.isArray(params), "the parameters of an action are not readable");
  const [first, second] = params;
  if (method === "eth_signTypedData_v4") {
    requireSafe(isSame(first, terms.payer), "the signature is asked of another account");
    const data = readTypedData(second);
    requireSafe(toNumber(data.domain["chainId"]) === terms.chainId, "the typed data is for another chain");
    return { method: "sign", data };
  }
  requireSafe(method === "eth_sendTransaction", "the wallet does not execute the method of an action");
  const { from, to, data, value = "0x0", chainId } = toObject(first);
  requireSafe(isSame(from, terms.payer), "the transaction is from another account");
  requireSafe(chainId === undefined || toNumber(chainId) === terms.chainId, "the transaction is for another chain");
  requireSafe(isSame(to, terms.token), "the transaction does not call the option's token");
  requireSafe(toNumber(value) === 0n, "the transaction sends native coins");
  requireSafe(
    typeof data === "string" && /^0x[0-9a-f]{136,}$/i.test(data),
    "the call of the transaction is not readable",
  );
  return { method: "send", call: { to: to as EvmCall["to"], data: data as EvmCall["data"], value: 0n } };
}

/** Checks the signature that pays. */
function checkPayment({ domain, primaryType, message }: TypedData, terms: Terms): void {
  if (primaryType === "TransferWithAuthorization" || primaryType === "ReceiveWithAuthorization") {
    requireSafe(isSame(domain["verifyingContract"], terms.token), "the authorization is for another token");
    requireSafe(isSame(message["from"], terms.payer), "the authorization is of another account");
    requireSafe(toNumber(message["value"]) === terms.amount, "the authorization is for another amount");
    requireSafe(endsBy(message["validBefore"], terms), "the authorization is valid for too long");
    return;
  }
  requireSafe(primaryType === "PermitTransferFrom", `the wallet does not sign ${primaryType} as a payment`);
  requireSafe(isSame(domain["verifyingContract"], terms.permit2), "the permit is not for Permit2");
  const permitted = toObject(message["permitted"]);
  requireSafe(isSame(permitted["token"], terms.token), "the permit is for another token");
  requireSafe(toNumber(permitted["amount"]) === terms.amount, "the permit is for another amount");
  requireSafe(endsBy(message["deadline"], terms), "the permit is valid for too long");
}

/** Checks an EIP-2612 permit that grants the allowance. */
function checkPermit({ domain, primaryType, message }: TypedData, terms: Terms): void {
  requireSafe(primaryType === "Permit", `the wallet does not sign ${primaryType} as an allowance`);
  requireSafe(isSame(domain["verifyingContract"], terms.token), "the allowance is of another token");
  requireSafe(isSame(message["owner"], terms.payer), "the allowance is of another account");
  requireSafe(isSame(message["spender"], terms.permit2), "the allowance is for another contract");
  requireSafe(toNumber(message["value"]) === terms.amount, "the allowance is for another amount");
  requireSafe(endsBy(message["deadline"], terms), "the allowance can be granted for too long");
}

const APPROVE = "0x095ea7b3";
const TRANSFER = "0xa9059cbb";

function checkApproval({ data }: EvmCall, terms: Terms): void {
  const { selector, account, amount } = readCall(data);
  requireSafe(selector === APPROVE, "the transaction before the payment is no approval");
  requireSafe(isSame(account, terms.permit2), "the approval is for another contract");
  requireSafe(data.length === 2 + 2 * 68, "the approval has more data than an approval");
  requireSafe(amount === 0n || amount === terms.amount, "the approval is for another amount");
}

/** Checks a transfer, which may have a tag behind it: tokens ignore it. */
function checkTransfer({ data }: EvmCall, terms: Terms): void {
  const { selector, amount } = readCall(data);
  requireSafe(selector === TRANSFER, "the transaction is no transfer");
  requireSafe(amount === terms.amount, "the transfer is of another amount");
}

/** Reads a call with an address and an amount. */
function readCall(data: string): { selector: string; account: string; amount: bigint } {
  const words = data.slice(10).toLowerCase();
  requireSafe(/^0{24}/.test(words), "the address of the call is not readable");
  return {
    selector: data.slice(0, 10).toLowerCase(),
    account: `0x${words.slice(24, 64)}`,
    amount: BigInt(`0x${words.slice(64, 128)}`),
  };
}

/** Compares addresses in hex, whose case is only a checksum. */
const isSame = (given: unknown, expected: string): boolean =>
  typeof given === "string" && given.toLowerCase() === expected.toLowerCase();

/** Returns true for a time (Unix seconds) that does not lie too far away. */
const endsBy = (time: unknown, { until }: Terms): boolean => (toNumber(time) ?? until + 1n) <= until;
