import type { SolanaKey } from "../../ops/local/solana-client.ts";
import { fundSolanaBuyers, sendTokens, tokenBalance } from "../support/solana.ts";
import type { Payers } from "./payers.ts";
import type { Plan } from "./plan.ts";
import type { SolanaStage } from "./solana-stage.ts";

const commonBuyers = 24;
const unitsPerCent = 10_000n;

/** Creates and funds every buyer before any fault. Common buyers never run out of money; disturbed ones have just enough. */
export async function makeSolanaPayers({ id, solana }: SolanaStage, all: readonly Plan[]): Promise<Payers> {
  const [other, ...common] = await fundSolanaBuyers(solana, commonBuyers + 1, 1_000_000_000_000n);
  const own = new Map<number, SolanaKey>();
  for (const { index, cents } of all.filter(({ family, kind }) => family === "solana" && kind.startsWith("spent")))
    for (const buyer of await fundSolanaBuyers(solana, 1, BigInt(cents) * unitsPerCent)) own.set(index, buyer);
  const buyerOf = ({ index }: Plan) => own.get(index) ?? (common[index % common.length] as SolanaKey);
  return {
    chain: id,
    buyerOf,
    isWorthless: async () => true,
    async disturb(plan) {
      if (!plan.kind.startsWith("spent")) return;
      // The payer sends all its money to another account.
      const from = buyerOf(plan);
      const amount = await tokenBalance(solana, from.address);
      await sendTokens(solana, { from, to: other?.address ?? "", amount });
    },
    relent: () => undefined,
  };
}
