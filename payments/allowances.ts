import type { Holding } from "../chains/evm/holdings.ts";
import type { EvmToken } from "../chains/evm/open.ts";
import type { AccountKind } from "../chains/evm/wallets.ts";
import type { Allowance } from "../db/tables.ts";

/**
 * What an account still has to allow before it can pay an amount (minor units) of a token: null when nothing, undefined
 * when it cannot pay this way at all.
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
      // A push proves its payer as the sender, and a wallet that is a contract sends nothing itself.
      return kind === "contract" || holding.gas === 0n ? undefined : null;
    case "permit2":
      if (holding.allowed >= amount) return null;
      // A contract has no key that a token could ask; it approves by a transaction, paid for as its wallet does.
      if (token.allowance.by === "permit" && kind !== "contract")
        return { by: "permit", nonce: String(holding.permitNonce) };
      if (kind !== "contract" && holding.gas === 0n) return undefined;
      return {
        by: "approve",
        fromZero: token.allowance.by === "approve" && token.allowance.fromZero && holding.allowed > 0n,
      };
  }
}
