import { readAccounts } from "../../../chains/solana/cluster-state.ts";
import { readMint, validateMint } from "../../../chains/solana/mints.ts";
import type { SolanaChain } from "../../../chains/solana/open-solana-chain.ts";
import { failure, ok } from "../finding.ts";
import type { Check } from "../run-checks.ts";

/** Checks each mint: that it exists, its program, its decimals and its extensions. */
export function mintChecks(chain: SolanaChain): Check[] {
  return [...chain.tokens.values()].map((token) => {
    const name = `${token.symbol} mint`;
    return {
      name,
      async run() {
        const [account] = await readAccounts(chain, [token.token]);
        const facts = account ? readMint(account) : { error: "the mint does not exist" };
        const error = "error" in facts ? facts.error : validateMint(facts, token);
        if (error) return [failure(name, error, `Correct the entry of ${token.asset}, or remove the asset.`)];
        return [ok(name, `${token.decimals} decimals, program ${token.program}, ${token.token}`)];
      },
    };
  });
}
