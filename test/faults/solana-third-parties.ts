import { fundSolanaBuyers, sendTokens } from "../support/test-solana.ts";
import type { Fault } from "./fault-scheduler.ts";
import type { Random } from "./seeded-random.ts";
import type { SolanaEnvironment } from "./solana-environment.ts";

const thirdPartyCount = 3;
const fortune = 1_000_000_000n;
/** Memos that a text column cannot store, or that are longer than the service stores. */
const memos = ["\u0000", "\u001b[31m\u0000\n", "\u202e\ufeff", "🙂".repeat(80), "pay_\u0000", undefined] as const;

/** Returns what third parties may do to a treasury on Solana, at their own cost and in the background. */
export async function solanaThirdPartyFaults({ solana, keys }: SolanaEnvironment, random: Random): Promise<Fault[]> {
  const all = await fundSolanaBuyers(solana, thirdPartyCount, fortune);
  const to = keys.treasury.address;
  const deposit = (amount: bigint, memo?: string) => {
    const more = memo === undefined ? {} : { memo };
    // A transaction that the cluster rejects has no effect.
    void sendTokens(solana, { from: random.pick(all), to, amount, ...more }).catch(() => undefined);
  };
  const dust = async () => {
    for (let count = random.between(2, 6); count > 0; count -= 1)
      deposit(BigInt(random.between(0, 99)), random.pick(memos));
  };
  return [
    { name: "Solana dust with hostile memos", run: dust },
    {
      name: "a third party deposits money on Solana",
      run: async () => deposit(BigInt(random.between(1_000_000, 9_000_000)), random.pick(memos)),
    },
  ];
}
