import { encodeFunctionData, getAddress, type Hex, numberToHex } from "viem";
import { parseAccountId } from "../../chains/caip.ts";
import { tokenAbi } from "../../chains/evm/abi.ts";
import { permitTransferJson } from "../../chains/evm/collector-contract.ts";
import { permitJson } from "../../chains/evm/eip2612.ts";
import { typedDataJson } from "../../chains/evm/eip3009.ts";
import { type EvmChain, getEvmToken } from "../../chains/evm/open-evm-chain.ts";
import type { EvmOptionRow } from "../../db/queries/payment-options.ts";
import type { WalletAction } from "../wallet-driver.ts";
import { toAuthorization, toPermitTransfer, toPushData } from "./authorization-calls.ts";

/** Returns what a wallet has to execute for an EVM option, in order. Each action yields one result. */
export function listEvmActions(chain: EvmChain, row: EvmOptionRow): WalletAction[] {
  const sign = (json: string): WalletAction => {
    const account = parseAccountId(row.account)?.address ?? row.payer;
    return { chain: row.chain, method: "eth_signTypedData_v4", params: [account, json] };
  };
  const send = (data: Hex): WalletAction => {
    // With `chainId`, a wallet that has switched to another network rejects the call instead of sending it there.
    const chainId = numberToHex(chain.chainId);
    const call = { chainId, from: getAddress(row.payer), to: getAddress(row.token), data, value: "0x0" };
    return { chain: row.chain, method: "eth_sendTransaction", params: [call] };
  };
  switch (row.kind) {
    case "eip3009":
      return [sign(authorizationJson(chain, row))];
    case "permit2":
      return [...listAllowanceActions(chain, row, { sign, send }), sign(permitTransferJson(chain, withChecksum(row)))];
    case "push":
      return [send(toPushData(row))];
  }
}

type ActionBuilders = { sign: (json: string) => WalletAction; send: (data: Hex) => WalletAction };

/** Returns the actions that grant Permit2 an allowance of exactly this payment's amount. */
function listAllowanceActions(chain: EvmChain, row: EvmOptionRow, { sign, send }: ActionBuilders): WalletAction[] {
  if (!row.allowance) return [];
  if (row.allowance.by === "permit") {
    const { tokenDomain } = getEvmToken(chain, row.asset);
    if (!tokenDomain) throw new Error(`${row.asset} has no EIP-712 domain for permits`);
    const [owner, spender] = [getAddress(row.payer), getAddress(chain.permit2)];
    const nonce = BigInt(row.allowance.nonce);
    return [sign(permitJson(tokenDomain, { owner, spender, value: row.amount, nonce, deadline: row.valid_before }))];
  }
  const approve = (value: bigint) =>
    send(encodeFunctionData({ abi: tokenAbi, functionName: "approve", args: [getAddress(chain.permit2), value] }));
  return row.allowance.zeroAllowanceFirst ? [approve(0n), approve(row.amount)] : [approve(row.amount)];
}

function authorizationJson(chain: EvmChain, row: EvmOptionRow): string {
  const { tokenDomain } = getEvmToken(chain, row.asset);
  if (!tokenDomain) throw new Error(`${row.asset} has no EIP-712 domain for authorizations`);
  const authorization = toAuthorization(row);
  return typedDataJson(tokenDomain, {
    ...authorization,
    from: getAddress(authorization.from),
    to: getAddress(authorization.to),
  });
}

/** Returns the permit with a checksummed token address: some wallets reject an address without its checksum. */
function withChecksum(row: EvmOptionRow) {
  const permit = toPermitTransfer(row);
  return { ...permit, token: getAddress(permit.token) };
}
