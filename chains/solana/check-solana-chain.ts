import { ChainError } from "../errors.ts";
import { readAccounts } from "./cluster-state.ts";
import { readMint, validateMint } from "./mints.ts";
import type { SolanaChain } from "./open-solana-chain.ts";

/**
 * Compares the networks file with the cluster: each endpoint's genesis hash, and each mint's program, decimals and
 * extensions. Throws ChainError `wrong_chain` or `wrong_contract`, which must stop the process.
 */
export async function checkSolanaChain(chain: SolanaChain): Promise<void> {
  await chain.checkEndpoints();
  const tokens = [...chain.tokens.values()];
  const mints = await readAccounts(
    chain,
    tokens.map(({ token }) => token),
  );
  for (const [index, token] of tokens.entries()) {
    const account = mints[index];
    const facts = account ? readMint(account) : { error: "the mint does not exist" };
    const error = "error" in facts ? facts.error : validateMint(facts, token);
    if (error) throw new ChainError("wrong_contract", { detail: `${token.asset}: ${error}` });
  }
}
