import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Say } from "../../local/service.ts";
import type { StackFile } from "../../local/stack-file.ts";
import { percentile, printTable } from "./bench-stats.ts";
import { readCpu, readCpuSince } from "./cpu-time.ts";
import { createClient, type SendRequest } from "./http-client.ts";

type Args = { concurrency: number; seconds: number; say: Say };
/** The times of requests, milliseconds, how long they were sent, seconds, and the CPU seconds of each role meanwhile. */
type Load = { times: number[]; seconds: number; cpu: Record<string, number> };

/** Accounts in one options request. With the four tokens of the bench's own stack, it has 20 pairs to price and to read. */
const ACCOUNTS = 5;

/** Every kind of request has its turn so many times, so that other work on the machine slows all of them. */
const ROUNDS = 5;

/** Payments whose statuses are polled in turn. They do not change meanwhile. */
const POLLED = 500;

/**
 * Measures creations, options, statuses and checkout pages on one api process, beside a bare fastify route that is
 * measured in turns with them. Half of the options requests are the first of their payment, and half list the same options
 * once more.
 */
export async function benchHttp(stack: StackFile, args: Args): Promise<void> {
  const headers = { "api-key": stack.live.apiKey, "merchant-id": stack.live.merchantId };
  const service = createClient(stack.baseUrl, headers, args.concurrency);
  const wallets = createClient(stack.baseUrl, { "app-id": stack.live.appId, "client-id": "bench" }, args.concurrency);
  // As Chrome, Edge and Firefox send it over HTTPS.
  const browsers = createClient(stack.baseUrl, { "accept-encoding": "gzip, deflate, br, zstd" }, args.concurrency);
  const bare = await startBare();
  try {
    const reference = createClient(bare.url, headers, args.concurrency);
    const body = JSON.stringify({ referenceId: "bench", amount: { unit: "iso4217/USD", value: "100" } });
    const ids: string[] = [];
    const create = async () => {
      const { status, text } = await service("POST", "/v1/payments", body);
      if (status !== 201) throw new Error(`creating a payment returned ${status}: ${text}`);
      ids.push((JSON.parse(text) as { paymentId: string }).paymentId);
    };
    const accounts = stack.evm.buyers.map(({ address }) => `${stack.evm.chain}:${address}`);
    const getOptions = async (index: number) => {
      // A wallet lists the options of a payment, and lists them again later, before its buyer chooses.
      const visit = index % 2 === 0 ? index / 2 : Math.max(0, (index - 1) / 2 - args.concurrency);
      const first = (visit * ACCOUNTS) % accounts.length;
      const asked = JSON.stringify({ accounts: accounts.slice(first, first + ACCOUNTS) });
      const id = ids[visit % ids.length];
      expectOk(await wallets("POST", `/v1/gateway/payment/${id}/options`, asked));
    };
    const openPage = async (index: number) => expectOk(await browsers("GET", `/?pid=${ids[index % ids.length]}`));
    const getStatus = async (index: number) =>
      expectOk(await service("GET", `/v1/payments/${ids[index % Math.min(POLLED, ids.length)]}/status`));
    const post = async () => expectOk(await reference("POST", "/", body));
    const get = async () => expectOk(await reference("GET", "/"));

    const runs: [string, (index: number) => Promise<void>][] = [
      ["bare POST", post],
      ["create payment", create],
      ["bare GET", get],
      ["get status", getStatus],
      ["checkout page", openPage],
      ["options", getOptions],
    ];
    await load(stack, create, { ...args, seconds: 2 });
    const loads = new Map<string, Load>();
    for (let round = 0; round < ROUNDS; round += 1)
      for (const [name, once] of runs) {
        args.say(`${name}: ${args.seconds / ROUNDS} s at ${args.concurrency}`);
        loads.set(name, await load(stack, once, { ...args, seconds: args.seconds / ROUNDS }, loads.get(name)));
      }
    const rateOf = (name: string): number => {
      const { times, seconds } = loads.get(name) ?? { times: [], seconds: 1 };
      return times.length / seconds;
    };
    const ratio = (name: string, bare: string): [string, string] => [
      `${name}, ratio to ${bare}`,
      (rateOf(name) / rateOf(bare)).toFixed(3),
    ];
    printTable([
      ...[...loads].map(([name, { times }]): [string, string] => {
        const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)];
        return [name, `${rateOf(name).toFixed(0)}/s, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`];
      }),
      ratio("create payment", "bare POST"),
      ratio("options", "bare POST"),
      ratio("get status", "bare GET"),
      ratio("checkout page", "bare GET"),
      ...[...loads].map(([name, { times, cpu }]): [string, string] => [
        `${name}, CPU ms per request`,
        Object.entries(cpu)
          .map(([role, seconds]) => [role, ((seconds * 1_000) / times.length).toFixed(2)] as const)
          .filter(([, ms]) => Number(ms) > 0)
          .map((parts) => parts.join(" "))
          .join(", "),
      ]),
    ]);
  } finally {
    bare.process.kill();
  }
}

function expectOk({ status, text }: Awaited<ReturnType<SendRequest>>): void {
  if (status !== 200) throw new Error(`returned ${status}: ${text}`);
}

/** Runs `concurrency` request loops until the time is over, and adds them to those before. */
async function load(
  stack: StackFile,
  once: (index: number) => Promise<void>,
  args: Pick<Args, "concurrency" | "seconds">,
  before: Load = { times: [], seconds: 0, cpu: {} },
): Promise<Load> {
  const { times } = before;
  const cpuBefore = readCpu(stack);
  const begun = performance.now();
  const until = begun + args.seconds * 1_000;
  let index = times.length;
  const lane = async () => {
    while (performance.now() < until) {
      const sent = performance.now();
      await once(index++);
      times.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: args.concurrency }, lane));
  const cpu = readCpuSince(stack, cpuBefore);
  for (const [role, seconds] of Object.entries(before.cpu)) cpu[role] = (cpu[role] ?? 0) + seconds;
  return { times, seconds: before.seconds + (performance.now() - begun) / 1_000, cpu };
}

async function startBare(): Promise<{ url: string; process: ChildProcess }> {
  const file = new URL("./bare-server.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, [file], { stdio: ["ignore", "pipe", "inherit"] });
  const [url] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return { url, process: child };
}
