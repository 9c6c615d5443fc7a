import { numberToHex } from "viem";
import { ChainError } from "../../../chains/errors.ts";
import { readFinalBalance } from "../../../chains/evm/final-balance.ts";
import type { EvmChain } from "../../../chains/evm/open-evm-chain.ts";
import type { Call } from "../../../chains/json-rpc.ts";
import type { EvmNetwork } from "../../../runtime/networks/read-networks.ts";
import { failure, ok, warning } from "../finding.ts";
import { type Check, describeProblem } from "../run-checks.ts";
import { readFinalHeight } from "./finality-tags.ts";

const name = "final state";
const CONSEQUENCE = "without one the ledger is never compared with the chain.";

/**
 * Checks that an endpoint has the state of its newest final block. Most nodes keep the state of the newest 128 blocks only, and
 * on many chains a block is final later than that.
 */
export function stateCheck(network: EvmNetwork, call: Call): Check {
  return {
    name,
    async run() {
      // The check of the tag reports an endpoint without a final block.
      const block = await readFinalHeight(network, call).catch(() => undefined);
      if (block === undefined) return [];
      const request = call("eth_getBalance", [network.treasury.address, numberToHex(block)]);
      const error = await request.then(() => undefined, describeProblem);
      if (error === undefined) return [ok(name, `has the state of block ${block}, which is final`)];
      const remedy = `Let another endpoint of the chain have older states (an archive plan): ${CONSEQUENCE}`;
      return [warning(name, `does not return the state of block ${block}, which is final: ${error}`, remedy)];
    },
  };
}

/** Checks that one of a chain's endpoints has the state of its newest final block. */
export function anyStateCheck(chain: EvmChain): Check {
  return {
    name,
    async run() {
      const [asset = ""] = chain.tokens.keys();
      try {
        const { height } = await readFinalBalance(chain, { asset, nonce: undefined });
        return [ok(name, `an endpoint has the state of block ${height}, which is final`)];
      } catch (error) {
        // Other checks report a token or an endpoint that does not answer.
        if (!(error instanceof ChainError) || error.code !== "state_missing") return [];
        return [
          failure(name, "no endpoint has the state of final blocks", `Add an endpoint that has it: ${CONSEQUENCE}`),
        ];
      }
    },
  };
}
