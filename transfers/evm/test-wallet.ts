import type { TypedDataDefinition } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { parseTypedData } from "../../chains/evm/typed-data.ts";
import { keccak256 } from "../../chains/keccak256.ts";
import type { TestWallet, WalletAction } from "../wallet-driver.ts";

/** Opens the wallet of test mode: a plain key that signs typed data and sends no transaction. It never holds money. */
export function openTestWallet(seed: string): TestWallet {
  const account = privateKeyToAccount(keccak256(Buffer.from(seed)));
  return {
    address: account.address,
    sign: async (actions) => {
      const toSign = listTypedData(actions);
      return toSign && Promise.all(toSign.map((data) => account.signTypedData(data)));
    },
  };
}

/** Returns the typed data of actions; undefined when an action is not a signature. */
function listTypedData(actions: readonly WalletAction[]): TypedDataDefinition[] | undefined {
  if (actions.some(({ method }) => method !== "eth_signTypedData_v4")) return undefined;
  return actions.map(({ params }) => parseTypedData(String(params[1])));
}
