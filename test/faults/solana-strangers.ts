import { fundSolanaBuyers, sendTokens } from "../support/solana.ts";
import type { Fault } from "./nemesis.ts";
import type { Random } from "./random.ts";
import type { SolanaStage } from "./solana-stage.ts";

const strangers = 3;
const fortune = 1_000_000_000n;
/** What a memo may hold and a text column may not, and more than anybody wants to store. */
const memos = ["\u0000", "\u001b[31m\u0000\n", "\u202e\ufeff", "🙂".repeat(80), "pay_\u0000", undefined] as const;

/** What strangers may do to a treasury on Solana, at their own cost. Nobody waits for them. */
export async function solanaStrangerFaults({ solana, keys }: SolanaStage, random: Random): Promise<Fault[]> {
  const all = await fundSolanaBuyers(solana, strangers, fortune);
  const to = keys.treasury.address;
  const deposit = (amount: bigint, memo?: string) => {
    const more = memo === undefined ? {} : { memo };
    // One that the cluster does not take changes nothing.
    void sendTokens(solana, { from: random.pick(all), to, amount, ...more }).catch(() => undefined);
  };
  const dust = async () => {
    for (let count = random.between(2, 6); count > 0; count -= 1)
      deposit(BigInt(random.between(0, 99)), random.pick(memos));
  };
  return [
    { name: "Solana dust with hostile memos", run: dust },
    {
      name: "a stranger deposits money on Solana",
      run: async () => deposit(BigInt(random.between(1_000_000, 9_000_000)), random.pick(memos)),
    },
  ];
}
