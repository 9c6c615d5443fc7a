import { Registry } from "prom-client";
import { type Hex, hexToNumber } from "viem";
import { z } from "zod";
import { openEvmChain } from "../../../chains/evm/open-evm-chain.ts";
import { recoverSigner } from "../../../chains/evm/signature.ts";
import { openSigner } from "../../../chains/evm/signers/open-evm-keys.ts";
import type { Call } from "../../../chains/json-rpc.ts";
import { keccak256 } from "../../../chains/keccak256.ts";
import { createMetrics } from "../../../runtime/metrics.ts";
import { type EvmNetwork, readKey, readSecret, readText } from "../../../runtime/networks/read-networks.ts";
import type { Family, PreflightDeps } from "../family.ts";
import { keyCheck, keyRoles, SIGNED_TEXT } from "../keys.ts";
import type { Check } from "../run-checks.ts";
import { contractChecks } from "./contracts.ts";
import { anyStateCheck, stateCheck } from "./final-state.ts";
import { finalityChecks, readFinalHeight } from "./finality-tags.ts";
import { laneChecks } from "./lanes.ts";
import { logChecks } from "./log-ranges.ts";
import { priceChecks } from "./prices.ts";
import { readBlock } from "./read-block.ts";
import { subscriptionChecks } from "./subscriptions.ts";
import { tokenChecks } from "./tokens.ts";

const Id = z.string().transform((text) => hexToNumber(text as Hex));

/** Returns the checks of an EVM network. */
export function openEvmFamily(deps: PreflightDeps, network: EvmNetwork): Family {
  return {
    unit: "block",
    blockMs: network.blockMs,
    hasOracle: network.screening !== undefined,
    async identify(call) {
      const id = Id.parse(await call("eth_chainId", []));
      return { chain: `eip155:${id}`, description: `chain id ${id}` };
    },
    readHead: (call) => readBlock(call, "latest"),
    ping: (call) => call("eth_blockNumber", []),
    readFinalHashes: (calls) => readFinalHashes(network, calls),
    listEndpointChecks: (call, head, endpoint) => [
      ...finalityChecks(network, call, head),
      stateCheck(network, call),
      ...logChecks(network, call, head),
      ...subscriptionChecks(network, endpoint),
    ],
    listChainChecks(rpc) {
      const chain = openEvmChain({ ...network, rpc }, createMetrics(new Registry(), "worker"));
      return [
        anyStateCheck(chain),
        ...contractChecks(chain),
        ...tokenChecks(chain),
        ...laneChecks(chain),
        ...priceChecks(deps, network, chain),
      ];
    },
    listKeyChecks: () => listKeyChecks(deps, network),
  };
}

async function readFinalHashes(network: EvmNetwork, calls: readonly Call[]) {
  const heights = await Promise.all(calls.map((call) => readFinalHeight(network, call)));
  const number = Math.min(...heights);
  const hashes = await Promise.all(
    calls.map((call) =>
      readBlock(call, number).then(
        ({ hash }) => hash,
        () => undefined,
      ),
    ),
  );
  return { number, hashes };
}

function listKeyChecks({ env }: PreflightDeps, network: EvmNetwork): Check[] {
  const readers = {
    readKey: (source: Parameters<typeof readKey>[0]) => readKey(source, env),
    readSecret: (source: Parameters<typeof readSecret>[0]) => readSecret(source, env),
    readText,
  };
  const roles = keyRoles(network);
  return [network.treasury, ...network.lanes].map(({ address, key }, index) =>
    keyCheck(env, {
      role: roles[index] ?? "",
      address,
      async signs() {
        const hash = keccak256(Buffer.from(SIGNED_TEXT));
        const signer = await openSigner(address, key, readers);
        return recoverSigner(hash, await signer.sign({ hash })) === address.toLowerCase();
      },
    }),
  );
}
