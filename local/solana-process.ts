import { fileURLToPath } from "node:url";
import { z } from "zod";
import { type Child, startChild } from "./child-process.ts";
import { freePair } from "./free-ports.ts";
import { postJson } from "./post-json.ts";
import { givenService, type Say, type Service } from "./service.ts";
import { waitUntil } from "./wait-until.ts";

export type SolanaOptions = {
  /** Port of JSON-RPC; WebSockets use the next port, as web3.js expects. Two free ports when unset. */
  port?: number;
  /** Milliseconds between slots; 400 as on mainnet when unset. */
  slotMs?: number;
  /** Number of later slots after which a transaction is final; 32 when unset. */
  finalityDepth?: number;
  /** The genesis hash, for a second chain in the same test. */
  genesis?: string;
  /** Ignores SOLANA_RPC_URL; for tests that stop and start it. */
  own?: boolean;
  say?: Say;
};

const program = fileURLToPath(new URL("solana/main.ts", import.meta.url));

/**
 * Returns the Solana that SOLANA_RPC_URL names, such as a solana-test-validator. Otherwise starts a local one with the real
 * programs, in a separate process, whose state is lost when it stops.
 */
export async function startSolana({ say, ...options }: SolanaOptions = {}): Promise<Service> {
  const given = process.env["SOLANA_RPC_URL"];
  if (options.own !== true && given !== undefined && given !== "") return givenService(given, "SOLANA_RPC_URL");
  const port = options.port ?? (await freePair());
  const url = `http://127.0.0.1:${port}`;
  const flags = { port, "slot-ms": options.slotMs, "finality-depth": options.finalityDepth, genesis: options.genesis };
  const line = Object.entries(flags).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, String(value)],
  );
  let child: Child | undefined;

  async function start(): Promise<void> {
    say?.("starting Solana");
    const running = await startChild(process.execPath, [program, ...line], {
      orphanSignal: "SIGKILL",
      onLine: console.error,
    });
    child = running;
    await waitUntil("Solana answers", () => answers(url, running), { withinMs: 60_000 });
  }
  await start();
  const end = async (signal: NodeJS.Signals): Promise<void> => child?.end(signal);
  const stop = () => end("SIGTERM");
  return { url, pid: () => (child?.isGone() === false ? child.pid : undefined), stop, kill: end, start, close: stop };
}

async function answers(url: string, child: Child): Promise<boolean> {
  if (child.isGone()) throw new Error(`Solana ended at start: ${child.tail()}`);
  return (await callSolana(url, "getHealth")) === "ok";
}

const rpcAnswer = z.object({
  result: z.unknown().optional(),
  error: z.looseObject({ code: z.number(), message: z.string() }).optional(),
});

/** Makes one JSON-RPC call. Throws an error response with its code. */
export async function callSolana(url: string, method: string, params: readonly unknown[] = []): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const { result, error } = rpcAnswer.parse(JSON.parse(await postJson(url, body)));
  if (error !== undefined) throw Object.assign(new Error(`${method}: ${error.message} (${error.code})`), error);
  return result;
}

/** Controls that only the local Solana has. On another cluster, each of them throws an error that says so. */
export type SolanaTestControls = {
  setSlotMs(ms: number): Promise<void>;
  /** Makes no slots until `resume`; transactions still land in the newest slot. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Makes slots at once. After 151 slots every earlier blockhash has expired. */
  jump(slots: number): Promise<void>;
  /** Accepts the next transactions with their signature and drops them; 0 ends this. */
  drop(count: number | "all"): Promise<void>;
  /** Lands transactions from now on this many slots later; 0 lands them at once. */
  hold(slots: number): Promise<void>;
  /** Delays the responses of these methods (`*` for all). */
  delay(methods: readonly string[], ms: number): Promise<void>;
  /** Makes the next calls of these methods (`*` for all) fail with an error, or hang. */
  fail(methods: readonly string[], times: number, how: "error" | "hang"): Promise<void>;
  /** Removes the newest slots with their transactions, and returns the removed signatures. Final slots stay. */
  rollback(slots: number): Promise<string[]>;
};

export function openTestControls(url: string): SolanaTestControls {
  const control = async (name: string, ...params: unknown[]): Promise<unknown> => {
    try {
      return await callSolana(url, `local_${name}`, params);
    } catch (cause) {
      if (!hasCode(cause, methodNotFound)) throw cause;
      throw new Error(`only the local Solana supports ${name}: unset SOLANA_RPC_URL`, { cause });
    }
  };
  const set = async (name: string, ...params: unknown[]): Promise<void> => void (await control(name, ...params));
  return {
    setSlotMs: (ms) => set("setSlotMs", ms),
    pause: () => set("pause"),
    resume: () => set("resume"),
    jump: (slots) => set("jump", slots),
    drop: (count) => set("drop", count),
    hold: (slots) => set("hold", slots),
    delay: (methods, ms) => set("delay", methods, ms),
    fail: (methods, times, how) => set("fail", methods, times, how),
    rollback: async (slots) => z.array(z.string()).parse(await control("rollback", slots)),
  };
}

const methodNotFound = -32601;

const hasCode = (error: unknown, code: number): boolean =>
  typeof error === "object" && error !== null && "code" in error && error.code === code;
