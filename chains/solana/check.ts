import { ChainFault } from "../faults.ts";
import { findMintFault, readMint } from "./mints.ts";
import type { SolanaChain } from "./open.ts";
import { readAccounts } from "./reads.ts";

/**
 * Compares the networks file with the cluster: each endpoint's genesis hash, and each mint's program, decimals and
 * extensions. Throws ChainFault `wrong_chain` or `wrong_contract`, which must stop the process.
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
    const facts = account ? readMint(account) : { fault: "the mint does not exist" };
    const fault = "fault" in facts ? facts.fault : findMintFault(facts, token);
    if (fault) throw new ChainFault("wrong_contract", { detail: `${token.asset}: ${fault}` });
  }
}
