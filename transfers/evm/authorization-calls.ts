import type { Hex } from "viem";
import { unwrapSignature } from "../../chains/evm/account-code.ts";
import {
  encodeCollect,
  encodeCollectWithPermit,
  hashPermitTransfer,
  type PermitTransfer,
} from "../../chains/evm/collector-contract.ts";
import { type Disbursement, encodeDisburse, hashDisbursement } from "../../chains/evm/disburser-contract.ts";
import {
  type Authorization,
  encodeBytesTransfer,
  encodeTransfer,
  hashAuthorization,
} from "../../chains/evm/eip3009.ts";
import type { Call } from "../../chains/evm/multicall.ts";
import { type EvmChain, getEvmToken } from "../../chains/evm/open-evm-chain.ts";
import { encodePush } from "../../chains/evm/push-call-data.ts";
import { joinSignature, splitSignature } from "../../chains/evm/signature.ts";
import type { EvmAuthorization } from "../verification.ts";

/** A row with the payer's signature. `permit` is the EIP-2612 signature for Permit2, where the payer needed one. */
export type SignedRow = EvmAuthorization & {
  signature: Buffer | null;
  permit: Buffer | null;
  smart_wallet: boolean;
};

/**
 * Returns the EIP-712 digest that the payer of a row signs. The treasury signs a payout through the Disburser. Throws for a
 * push, which has no authorization.
 */
export function hashRow(chain: EvmChain, row: EvmAuthorization): Hex {
  if (row.kind === "permit2") return hashPermitTransfer(chain, toPermitTransfer(row));
  if (row.kind === "disburse") return hashDisbursement(chain, toDisbursement(row));
  const { separator } = getEvmToken(chain, row.asset);
  if (row.kind === "push" || !separator) throw new Error(`a ${row.kind} transfer of ${row.asset} has no authorization`);
  return hashAuthorization(separator, toAuthorization(row));
}

/** Returns the calls that make a row's transfer, in order. The last call moves the money. */
export function listCalls(chain: EvmChain, row: SignedRow): Call[] {
  if (row.kind === "push") throw new Error(`a push of ${row.asset} is sent by its payer, not by a lane`);
  const { signature, deployment } = unwrapSignature(toHex(row.signature));
  const allowed = deployment && isAllowedFactory(chain, deployment.target);
  return [...(allowed ? [deployment] : []), toCall(chain, row, signature)];
}

/** Returns true for a factory contract that lanes may call to deploy a payer's wallet (ERC-6492). */
export function isAllowedFactory(chain: EvmChain, address: Hex): boolean {
  return chain.network.walletFactories.some((factory) => factory.toLowerCase() === address);
}

function toCall(chain: EvmChain, row: SignedRow, signature: Hex): Call {
  if (row.kind === "permit2") {
    const [payer, permit] = [row.payer, toPermitTransfer(row)];
    // Permit2 passes v on unchanged.
    const written = row.smart_wallet ? signature : joinSignature(splitSignature(signature));
    const data = row.permit
      ? encodeCollectWithPermit(payer, permit, written, toHex(row.permit))
      : encodeCollect(payer, permit, written);
    return { target: chain.collector, data };
  }
  if (row.kind === "disburse") return { target: chain.disburser, data: encodeDisburse(toDisbursement(row), signature) };
  const token = getEvmToken(chain, row.asset);
  const asBytes = row.smart_wallet && token.kind === "eip3009" && token.bytesSignatures;
  const encode = asBytes ? encodeBytesTransfer : encodeTransfer;
  return { target: row.token, data: encode(toAuthorization(row), signature) };
}

/** Returns the call data of a row's push: a transaction that the payer sends, tagged with the natural key. */
export function toPushData(row: Pick<EvmAuthorization, "receiver" | "amount" | "authorization_nonce">): Hex {
  const { receiver, amount, authorization_nonce: tag } = row;
  return encodePush({ receiver, amount, tag });
}

/** Returns the EIP-3009 authorization of a row. */
export function toAuthorization(row: Omit<EvmAuthorization, "kind" | "asset">): Authorization {
  return {
    token: row.token,
    from: row.payer,
    to: row.receiver,
    value: row.amount,
    validBefore: row.valid_before,
    nonce: row.authorization_nonce,
  };
}

/** Returns the Disburser payout of a row. */
function toDisbursement(row: Omit<EvmAuthorization, "kind" | "asset">): Disbursement {
  const { token, receiver, amount, authorization_nonce: nonce } = row;
  return { token, receiver, amount, nonce };
}

/** Returns the Permit2 transfer of a row. */
export function toPermitTransfer(row: EvmAuthorization): PermitTransfer {
  const { token, amount, authorization_nonce: nonce, valid_before: deadline } = row;
  return { token, amount, nonce, deadline };
}

function toHex(bytes: Buffer | null): Hex {
  return `0x${bytes?.toString("hex") ?? ""}`;
}
