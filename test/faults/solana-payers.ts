import type { SolanaKey } from "../../local/solana-client.ts";
import { fundSolanaBuyers, sendTokens, tokenBalance } from "../support/test-solana.ts";
import type { Payers } from "./payer-types.ts";
import type { Plan } from "./payment-plan.ts";
import type { SolanaEnvironment } from "./solana-environment.ts";

const commonBuyers = 24;
const unitsPerCent = 10_000n;

/** Creates and funds every buyer before any fault. Common buyers never run out of money; disturbed ones have just enough. */
export async function fundSolanaPayers({ id, solana }: SolanaEnvironment, all: readonly Plan[]): Promise<Payers> {
  const [other, ...common] = await fundSolanaBuyers(solana, commonBuyers + 1, 1_000_000_000_000n);
  const own = new Map<number, SolanaKey>();
  for (const { index, cents } of all.filter(({ family, kind }) => family === "solana" && kind.startsWith("spent")))
    for (const buyer of await fundSolanaBuyers(solana, 1, BigInt(cents) * unitsPerCent)) own.set(index, buyer);
  const buyerOf = ({ index }: Plan) => own.get(index) ?? (common[index % common.length] as SolanaKey);
  return {
    chain: id,
    buyerOf,
    canNoLongerPay: async () => true,
    async disturb(plan) {
      if (!plan.kind.startsWith("spent")) return;
      // The payer sends all its money to another account.
      const from = buyerOf(plan);
      const amount = await tokenBalance(solana, from.address);
      await sendTokens(solana, { from, to: other?.address ?? "", amount });
    },
    revertDisturbance: () => undefined,
  };
}
