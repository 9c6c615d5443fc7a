import { setTimeout as pause } from "node:timers/promises";
import { parseAbi } from "viem";
import { fundTokens } from "../../../local/spl-tokens.ts";
import { startAlteringProxy } from "../../support/altering-proxy.ts";
import { beginOnEvm, changeNetwork, freeze, pauseQueue, restart, sql, waitForRow } from "../bed-actions.ts";
import type { RunbookCase } from "../runbook-case.ts";

/** How often workers read what issuers have done, and then some, milliseconds. */
const ISSUERS_WITHIN_MS = 360_000;

const pausable = parseAbi(["function pause()", "function unpause()"]);

/** Runbooks about chains and their endpoints. */
export const chainCases: readonly RunbookCase[] = [
  {
    runbook: "rpc-down",
    alert: "RpcAllDown",
    what: "Anvil is frozen",
    inject: async ({ stack }) => ({ end: freeze(stack.file().processes.anvil) }),
  },
  {
    runbook: "watcher-behind",
    alert: "WatcherBehind",
    what: "the queue watch-chain is paused",
    inject: async (bed) => ({ end: await pauseQueue(bed, "watch-chain") }),
  },
  {
    runbook: "reorg-deep",
    alert: "FinalBlocksReverted",
    what: "Anvil replaces four blocks",
    async inject({ stack }) {
      const { client } = stack.chain;
      await client.mine({ blocks: 6 });
      await pause(3_000);
      await client.request({ method: "anvil_reorg" as never, params: [4, []] as never });
      return {};
    },
  },
  {
    runbook: "chain-halted",
    alert: "ChainHalted",
    what: "Anvil makes no more blocks, and the networks file says how old the newest may be",
    withinMs: 300_000,
    shows: /"state":"assigned"/,
    async inject(bed) {
      const { client, id } = bed.stack.chain;
      const restore = await changeNetwork(bed, id, { maxHeadAgeMs: 60_000 });
      await client.mine({ blocks: 1 });
      await pause(2_000);
      await client.setAutomine(false);
      await beginOnEvm(bed);
      return {
        async end() {
          await client.setAutomine(true);
          await client.mine({ blocks: 1 });
        },
        cleanUp: restore,
      };
    },
  },
  {
    runbook: "endpoints-disagree",
    alert: "EndpointsDisagree",
    what: "the networks file names a second endpoint, which leaves out the logs of blocks",
    async inject(bed) {
      const { anvil, id } = bed.stack.chain;
      const lying = await startAlteringProxy({ target: anvil.url });
      lying.alter((method, _params, result) => (method === "eth_getLogs" ? [] : result));
      const rpc = [
        { name: "local-0", url: bed.evm.url },
        { name: "lying", url: lying.url },
      ];
      const restore = await changeNetwork(bed, id, { rpc });
      await beginOnEvm(bed);
      return { end: restore };
    },
  },
  {
    runbook: "rpc-budget-short",
    alert: "RpcBudgetShort",
    what: "the networks file allows 200 calls a minute to the only endpoint",
    async inject(bed) {
      const { id } = bed.stack.chain;
      const rpc = [{ name: "local-0", url: bed.evm.url, callsPerMinute: 200 }];
      return { end: await changeNetwork(bed, id, { rpc }) };
    },
  },
  {
    runbook: "treasury-history",
    alert: "HistoryUnreadable",
    what: "Solana's endpoints do not return a deposit that is not ours; seven failed attempts are written to its row",
    shows: /"attempts_made":[1-9]/,
    async inject(bed) {
      const { client, mint, keys } = bed.stack.solana;
      bed.solana.setFaultMode("forgets receipts");
      await fundTokens(client, mint, [keys.treasury.address], 1_000_000n);
      await waitForRow(bed, "select signature from history_entry where attempts_made > 0", 60_000);
      await sql(bed, "update history_entry set attempts_made = 7, due_at = now()");
      return {
        async end() {
          bed.solana.setFaultMode(undefined);
          await sql(bed, "update history_entry set due_at = now()");
        },
      };
    },
  },
  {
    runbook: "issuer-actions",
    alert: "TokenPaused",
    what: "the issuer pauses the token",
    withinMs: ISSUERS_WITHIN_MS,
    endsWithinMs: ISSUERS_WITHIN_MS,
    async inject({ stack }) {
      const { client, contracts } = stack.chain;
      const call = (functionName: "pause" | "unpause") =>
        client.writeContract({ address: contracts.token, abi: pausable, functionName } as never);
      await call("pause");
      return { end: () => call("unpause") };
    },
  },
  {
    runbook: "issuer-actions",
    alert: "TokenUpgraded",
    what: "the code at the token's address gets one byte more; the workers are restarted",
    withinMs: ISSUERS_WITHIN_MS,
    async inject(bed) {
      const { client, contracts } = bed.stack.chain;
      const code = await client.getCode({ address: contracts.token });
      await client.setCode({ address: contracts.token, bytecode: `${code ?? "0x"}00` });
      return { end: () => restart(bed) };
    },
  },
];
