import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import pg from "pg";
import { privateKeyToAccount } from "viem/accounts";
import { ask, createPayment, pay, type Shop } from "../../local/buyer-client.ts";
import { usdcAbi } from "../../local/circle-artifacts.ts";
import { execute } from "../../local/execute-sql.ts";
import type { Stack } from "../../local/stack.ts";
import { queuePrefix } from "../../queues/queue-prefix.ts";

/** A fault that a runbook is about. `inject` causes it and returns what ends it. */
export type Fault = {
  runbook: string;
  /** The alert whose expression becomes true. */
  alert: string;
  what: string;
  inject: (stack: Stack) => Promise<() => Promise<unknown>>;
};

const GWEI = 1_000_000_000n;
const nothing = async () => undefined;
const shopOf = (stack: Stack): Shop => ({ baseUrl: stack.file().baseUrl, caller: stack.file().live });
let paid = 0;

/** Begins a payment of a buyer that no other payment uses, on EVM or on Solana. */
async function begin(stack: Stack, on: "evm" | "solana" = "evm"): Promise<string> {
  paid += 1;
  const { chain, solana } = stack;
  const id = await createPayment(shopOf(stack), { referenceId: `runbook ${paid}`, cents: "500" });
  const key = chain.buyers[3 + (paid % 12)];
  const buyer = on === "evm" ? key && privateKeyToAccount(key.privateKey) : solana.buyers[paid % 12];
  if (!buyer) throw new Error("the stack has too few buyers");
  await pay(shopOf(stack), id, buyer, on === "evm" ? chain.id : solana.id);
  return id;
}

/** Stops a process without ending it, and lets it go on. */
async function freeze(pid: number): Promise<() => Promise<unknown>> {
  process.kill(pid, "SIGSTOP");
  return async () => process.kill(pid, "SIGCONT");
}

/** Keeps a queue's jobs from being started. */
async function pauseQueue(stack: Stack, name: string): Promise<() => Promise<unknown>> {
  const connection = new Redis(stack.file().redisUrl, { maxRetriesPerRequest: null });
  const queue = new Queue(name, { connection, prefix: queuePrefix("pay", name) });
  await queue.pause();
  return async () => {
    await queue.resume();
    await queue.close();
    connection.disconnect();
  };
}

async function mineAt({ chain }: Stack, baseFeePerGas: bigint): Promise<void> {
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas });
  await chain.client.mine({ blocks: 1 });
}

async function changeLimits(stack: Stack, change: Record<string, unknown>): Promise<() => Promise<unknown>> {
  const file = join(stack.dir, "limits.jsonc");
  const before = await readFile(file, "utf8");
  await writeFile(file, JSON.stringify({ ...JSON.parse(before), ...change }));
  return () => writeFile(file, before);
}

/** Faults in the order in which they are injected. */
export const faults: readonly Fault[] = [
  {
    runbook: "exceptions-open",
    alert: "MoneyInExceptions",
    what: "a deposit that belongs to no payment",
    async inject({ chain }) {
      const { client, contracts, keys } = chain;
      const args = [keys.treasury.address, 1_000_000n] as const;
      await client.writeContract({ address: contracts.token, abi: usdcAbi, functionName: "mint", args });
      return nothing;
    },
  },
  {
    runbook: "rpc-down",
    alert: "RpcAllDown",
    what: "Anvil is frozen",
    inject: (stack) => freeze(stack.file().processes.anvil ?? 0),
  },
  {
    runbook: "watcher-behind",
    alert: "WatcherBehind",
    what: "the queue watch-chain is paused",
    inject: (stack) => pauseQueue(stack, "watch-chain"),
  },
  {
    runbook: "lane-at-fee-ceiling",
    alert: "LaneAtFeeCeiling",
    what: "the base fee is 300 gwei, above the ceiling of 200",
    async inject(stack) {
      await mineAt(stack, 300n * GWEI);
      await begin(stack);
      return () => mineAt(stack, GWEI);
    },
  },
  {
    runbook: "lane-gas-low",
    alert: "LaneGasNearlyOut",
    what: "the lanes hold one wei",
    async inject({ chain }) {
      const { client, keys } = chain;
      const fund = (value: bigint) =>
        Promise.all(keys.lanes.map(({ address }) => client.setBalance({ address, value })));
      await fund(1n);
      return () => fund(10n ** 20n);
    },
  },
  {
    runbook: "reorg-deep",
    alert: "FinalBlocksReverted",
    what: "Anvil replaces four blocks",
    async inject(stack) {
      const { client } = stack.chain;
      await client.mine({ blocks: 6 });
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      await client.request({ method: "anvil_reorg" as never, params: [4, []] as never });
      return nothing;
    },
  },
  {
    runbook: "queue-waits",
    alert: "QueueWaitsTooLong",
    what: "the queue relay-transfers is paused while a payment is accepted",
    async inject(stack) {
      const resume = await pauseQueue(stack, "relay-transfers");
      await begin(stack);
      return resume;
    },
  },
  {
    runbook: "sweep",
    alert: "SweepStopped",
    what: "the queue sweep is paused",
    inject: (stack) => pauseQueue(stack, "sweep"),
  },
  {
    runbook: "targets-missing",
    alert: "TargetsMissing",
    what: "all workers are stopped",
    async inject(stack) {
      const release = await stack.hold(["worker"]);
      return async () => release();
    },
  },
  {
    runbook: "database-pool",
    alert: "DatabasePoolSaturated",
    what: "a transaction locks the tables of leases and cursors",
    async inject(stack) {
      const client = new pg.Client({ connectionString: stack.file().postgresUrl });
      await client.connect();
      await client.query("begin");
      await client.query("lock table chain_cursor, webhook_endpoint, transfer, payment in access exclusive mode");
      return async () => {
        await client.query("rollback");
        await client.end();
      };
    },
  },
  {
    runbook: "failed-jobs",
    alert: "FailedJobs",
    what: "a job whose data no handler accepts",
    async inject(stack) {
      const connection = new Redis(stack.file().redisUrl, { maxRetriesPerRequest: null });
      const queue = new Queue("settle", { connection, prefix: queuePrefix("pay", "settle") });
      const job = await queue.add("settle", { unknown: true }, { attempts: 1 });
      return async () => {
        await job.remove();
        await queue.close();
        connection.disconnect();
      };
    },
  },
  {
    runbook: "webhooks-failing",
    alert: "WebhooksFailing",
    what: "an endpoint answers 500, and its events are made four hours old",
    async inject(stack) {
      const server = createServer((_request, response) => void response.writeHead(500).end());
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`;
      await ask(shopOf(stack), "POST", "/v1/webhook-endpoints", { url });
      await begin(stack);
      await new Promise((resolve) => setTimeout(resolve, 5_000));
      await execute(
        stack.file().postgresUrl,
        "update webhook_delivery set at = at - interval '4 hours' where state = 'pending'",
      );
      return async () => {
        await execute(
          stack.file().postgresUrl,
          "update webhook_delivery set at = at + interval '4 hours' where state = 'pending'",
        );
        server.closeAllConnections();
        server.close();
      };
    },
  },
  {
    runbook: "payouts-held",
    alert: "PayoutsHeld",
    what: "the token's issuer blocks the merchant's account",
    async inject(stack) {
      const { client, contracts, destination } = stack.chain;
      const call = (functionName: "blacklist" | "unBlacklist") =>
        client.writeContract({ address: contracts.token, abi: usdcAbi, functionName, args: [destination] } as never);
      await call("blacklist");
      await begin(stack);
      return () => call("unBlacklist");
    },
  },
  {
    runbook: "signer-down",
    alert: "SignerPaused",
    what: "the limits file pauses the signer",
    inject: (stack) => changeLimits(stack, { paused: true }),
  },
  {
    runbook: "settlement-overdue",
    alert: "SettlementOverdue",
    what: "the signer is paused, and the payout that waits is made two hours old",
    async inject(stack) {
      const restore = await changeLimits(stack, { paused: true });
      await begin(stack);
      await new Promise((resolve) => setTimeout(resolve, 8_000));
      await execute(
        stack.file().postgresUrl,
        "update settlement set created_at = created_at - interval '2 hours', closed_at = closed_at - interval '2 hours' where state <> 'paid'",
      );
      return restore;
    },
  },
  {
    runbook: "board-logins-refused",
    alert: "BoardLoginsRefused",
    what: "twelve logins with a wrong password",
    async inject(stack) {
      const { adminUrl } = stack.file();
      const body = new URLSearchParams({ name: "somebody else", password: "wrong", code: "000000" });
      for (let count = 0; count < 12; count += 1) {
        await fetch(new URL("/login", adminUrl), {
          method: "POST",
          body,
          headers: { "sec-fetch-site": "same-origin" },
        });
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
      return nothing;
    },
  },
  {
    runbook: "ledger-mismatch",
    alert: "LedgerMismatch",
    what: "tokens leave the treasury by its key, and not by the service",
    async inject({ chain }) {
      const { client, contracts, keys } = chain;
      const { address, privateKey } = keys.treasury;
      await client.setBalance({ address, value: 10n ** 18n });
      const [stranger] = chain.buyers.slice(-1);
      const args = [stranger?.address, 10_000n] as never;
      const account = privateKeyToAccount(privateKey);
      await client.writeContract({
        address: contracts.token,
        abi: usdcAbi,
        functionName: "transfer",
        args,
        account,
      } as never);
      return nothing;
    },
  },
];
