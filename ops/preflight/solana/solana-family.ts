import { Registry } from "prom-client";
import { z } from "zod";
import type { Call } from "../../../chains/json-rpc.ts";
import { verifySignature } from "../../../chains/solana/ed25519-keys.ts";
import { openSolanaChain } from "../../../chains/solana/open-solana-chain.ts";
import { openSolanaKey } from "../../../chains/solana/open-solana-keys.ts";
import { createMetrics } from "../../../runtime/metrics.ts";
import {
  readSecret,
  readText,
  type SecretSource,
  type SolanaNetwork,
} from "../../../runtime/networks/read-networks.ts";
import type { Family, Head, PreflightDeps } from "../family.ts";
import { keyCheck, keyRoles, SIGNED_TEXT } from "../keys.ts";
import type { Check } from "../run-checks.ts";
import { accountChecks } from "./accounts.ts";
import { commitmentChecks, readSlot } from "./commitments.ts";
import { historyChecks } from "./history.ts";
import { innerInstructionChecks } from "./inner-instructions.ts";
import { mintChecks } from "./mints.ts";

/** Returns the checks of a Solana cluster. */
export function openSolanaFamily(deps: PreflightDeps, network: SolanaNetwork): Family {
  return {
    unit: "slot",
    blockMs: network.slotMs,
    hasOracle: false,
    async identify(call) {
      const genesis = z.string().parse(await call("getGenesisHash", []));
      return { chain: `solana:${genesis.slice(0, 32)}`, description: `genesis ${genesis}` };
    },
    readHead,
    ping: (call) => readSlot(call, "confirmed"),
    listEndpointChecks: (call, head) => [
      ...commitmentChecks(network, call),
      ...historyChecks(network, call, head),
      ...innerInstructionChecks(network, call),
    ],
    listChainChecks(rpc) {
      const chain = openSolanaChain({ ...network, rpc }, createMetrics(new Registry(), "worker"));
      return [...mintChecks(chain), ...accountChecks(chain, deps.networks.deployment)];
    },
    listKeyChecks: () => listKeyChecks(deps, network),
  };
}

const Seconds = z.number().nullable();

/** Returns the newest confirmed slot with the time of the newest final one: newer slots have no time yet. */
async function readHead(call: Call): Promise<Head> {
  const [number, final] = await Promise.all([readSlot(call, "confirmed"), readSlot(call, "finalized")]);
  const seconds = Seconds.parse(await call("getBlockTime", [final]).catch(() => null));
  return { number, at: seconds === null ? undefined : new Date(seconds * 1_000) };
}

function listKeyChecks({ env }: PreflightDeps, network: SolanaNetwork): Check[] {
  const roles = keyRoles(network);
  const readers = { readSecret: (source: SecretSource) => readSecret(source, env), readText };
  return [network.treasury, ...network.lanes].map((account, index) =>
    keyCheck(env, {
      role: roles[index] ?? "",
      address: account.address,
      async signs() {
        const message = Buffer.from(SIGNED_TEXT);
        const signer = await openSolanaKey(account, readers);
        return verifySignature(account.address, message, await signer.sign(message));
      },
    }),
  );
}
