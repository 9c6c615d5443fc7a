import type { AccountKind } from "../../chains/evm/account-code.ts";
import type { Holding } from "../../chains/evm/account-holdings.ts";
import type { EvmToken } from "../../chains/evm/open-evm-chain.ts";
import type { Allowance } from "../../db/tables.ts";

/**
 * Returns the allowance that an account has to grant before it can pay an amount (minor units) of a token: null when it
 * needs none, undefined when it cannot pay with this token.
 */
export function chooseAllowance(
  token: EvmToken,
  account: { kind: AccountKind; holding: Holding },
  amount: bigint,
): Allowance | null | undefined {
  const { kind, holding } = account;
  if (holding.balance < amount) return undefined;
  switch (token.kind) {
    case "eip3009":
      return kind === "contract" && !token.bytesSignatures ? undefined : null;
    case "push":
      // The payer of a push is the sender of the transaction, and a contract wallet never sends one itself.
      return kind === "contract" || holding.gas === 0n ? undefined : null;
    case "permit2":
      if (holding.allowed >= amount) return null;
      // A contract wallet has no key to sign a permit with. It approves by a transaction; its own infrastructure pays
      // the gas.
      if (token.allowance.by === "permit" && kind !== "contract")
        return { by: "permit", nonce: String(holding.permitNonce) };
      if (kind !== "contract" && holding.gas === 0n) return undefined;
      return {
        by: "approve",
        zeroAllowanceFirst:
          token.allowance.by === "approve" && token.allowance.zeroAllowanceFirst && holding.allowed > 0n,
      };
  }
}
