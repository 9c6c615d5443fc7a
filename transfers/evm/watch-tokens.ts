import { checkEvmToken } from "../../chains/evm/check-evm-chain.ts";
import type { EvmChain, EvmToken } from "../../chains/evm/open-evm-chain.ts";
import { readTokenState } from "../../chains/evm/token-states.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/** The code of each token when this process first read it, and the code that was last reported as changed. */
type Code = { first: string; reported: string };
const codes = new WeakMap<EvmToken, Code>();

/**
 * Sets the gauges of what issuers have done with a chain's tokens: upgraded since this process started, paused, or blocked
 * for the treasury. A token that cannot be read keeps its last values. Transfers go on after an upgrade; see
 * docs/decisions/issuer-actions.md.
 */
export async function readIssuerActions(deps: Pick<TransferDeps, "metrics" | "log">, chain: EvmChain): Promise<void> {
  for (const token of chain.tokens.values()) {
    const labels = { chain: chain.chain, asset: token.asset };
    try {
      const { code, paused, blocksTreasury } = await readTokenState(chain, token);
      const known = codes.get(token) ?? { first: code, reported: code };
      codes.set(token, { ...known, reported: code });
      deps.metrics.tokenPaused.set(labels, paused ? 1 : 0);
      deps.metrics.treasuryBlocked.set(labels, blocksTreasury ? 1 : 0);
      deps.metrics.tokenUpgraded.set(labels, code === known.first ? 0 : 1);
      if (code !== known.reported) await reportUpgrade(deps, chain, token);
    } catch (err) {
      deps.log.warn({ err, ...labels }, "state of a token cannot be read");
    }
  }
}

/** Logs an upgrade, and whether the new code still matches the networks file. */
async function reportUpgrade({ log }: Pick<TransferDeps, "log">, chain: EvmChain, token: EvmToken): Promise<void> {
  const mismatch = await checkEvmToken(chain, token).then(
    () => undefined,
    (error: unknown) => String(error),
  );
  log.error({ chain: chain.chain, asset: token.asset, mismatch }, "issuer has changed the code of a token");
}
