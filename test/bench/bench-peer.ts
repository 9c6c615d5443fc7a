import type { Say } from "../../local/service.ts";
import type { Stack } from "../../local/stack.ts";
import type { StackSettings } from "../../local/stack-settings.ts";
import { accumulatePayouts } from "./bench-payments.ts";
import {
  type Contender,
  type Measured,
  ourContender,
  peerContender,
  rawContender,
  withOwnChain,
} from "./peer-contenders.ts";
import { PEER_VERSION } from "./peer-package.ts";

type Args = {
  /** The payments in flight at once, one after the other. */
  inFlight: readonly number[];
  settings: StackSettings;
  /** Where the packages of the peer are installed. */
  folder: string;
  say: Say;
};

const OURS = "this service";
const RAW = "raw loop";
const MANAGED = `x402 ${PEER_VERSION}, nonce manager`;
/** In flight at which this service must make more payments per second than the peer with a nonce manager. */
const MUST_WIN_AT = [8, 32, 128];

/** What each contender does for a payment, and what it leaves to others. */
const whatTheyDo = {
  [OURS]:
    "checks signature, balance and compliance, stores the bytes before sending, relays in batches, watches reorgs, books and pays out",
  [RAW]: "one key signs and sends one transaction per payment and waits for its block; no checks, no records",
  [`x402 ${PEER_VERSION}`]:
    "the facilitator of its documentation: POST /settle verifies, sends one transaction and waits for its receipt; no records, straight to the merchant",
  [MANAGED]:
    "the same with viem's nonceManager on the facilitator's account, polling receipts every 50 ms instead of 4 s",
};

/**
 * Measures this service, a raw loop and the peer one after the other at each concurrency, and prints one table in Markdown. Our
 * stack is stopped before the others run, and each of them has an Anvil of its own, so that none takes CPU time from another.
 * Returns false when a payment of ours was not paid, or when the peer with a nonce manager was faster where it must not be.
 */
export async function benchPeer(start: () => Promise<Stack>, args: Args): Promise<boolean> {
  const { settings, folder, say } = args;
  const rows: Row[] = [];
  const measure = async (name: string, contender: Contender) => {
    for (const inFlight of args.inFlight) {
      const payments = name === RAW ? fewPayments(inFlight, settings) : manyPayments(inFlight, settings);
      say(`${name}: ${payments} payments, ${inFlight} in flight`);
      rows.push({ ...(await contender(payments, inFlight)), name, inFlight });
    }
  };
  const stack = await start();
  try {
    await accumulatePayouts(stack.file());
    const ours = ourContender(stack.file());
    say(`${OURS}: warming up`);
    await ours(200, 32);
    await measure(OURS, ours);
  } finally {
    await stack.stop();
  }
  await withOwnChain(settings, (chain) => measure(RAW, rawContender(chain)));
  await withOwnChain(settings, (chain) =>
    measure(`x402 ${PEER_VERSION}`, peerContender(chain, { folder, hasNonceManager: false })),
  );
  await withOwnChain(settings, (chain) =>
    measure(MANAGED, peerContender(chain, { folder, hasNonceManager: true, pollMs: 50 })),
  );
  print(rows, settings);
  return isWithin(rows);
}

type Row = Measured & { name: string; inFlight: number };

/** Returns the payments of the raw loop. With 3,000 at 256 in flight it made a tenth per second, and would be no reference. */
function fewPayments(inFlight: number, { ANVIL_BLOCK_TIME }: StackSettings): number {
  return Math.max(ANVIL_BLOCK_TIME === undefined ? 100 : 20, inFlight * 8);
}

/**
 * Returns enough payments for a rate that does not depend on the first second, in which V8 compiles the code for this number in flight.
 * With blocks at intervals they are few enough to end within minutes.
 */
function manyPayments(inFlight: number, settings: StackSettings): number {
  const few = fewPayments(inFlight, settings);
  return settings.ANVIL_BLOCK_TIME === undefined ? Math.min(3_000, Math.max(few, inFlight * 64)) : few;
}

function print(rows: readonly Row[], { ANVIL_BLOCK_TIME, WORKERS, LANES }: StackSettings): void {
  const blocks = ANVIL_BLOCK_TIME === undefined ? "a block per transaction" : `blocks every ${ANVIL_BLOCK_TIME} s`;
  console.log(`\n${blocks}; ${WORKERS} workers, lanes: ${LANES}\n`);
  const header = ["in flight", "", "paid per second", "p50", "p95", "paid", "gas per payment", "RPC calls per payment"];
  const lines = rows
    .toSorted((a, b) => a.inFlight - b.inFlight)
    .map((row) => {
      const each = (sum: number) => (row.paid === 0 ? "–" : (sum / row.paid).toFixed(2));
      return [
        String(row.inFlight),
        row.name,
        row.perSecond.toFixed(row.perSecond < 10 ? 1 : 0),
        `${row.p50.toFixed(0)} ms`,
        `${row.p95.toFixed(0)} ms`,
        `${((100 * row.paid) / row.payments).toFixed(0)} %`,
        row.paid === 0 ? "–" : Math.round(row.gas / row.paid).toLocaleString("en"),
        each(row.rpcCalls),
      ];
    });
  printMarkdown(header, lines);
  console.log(
    `\n${Object.entries(whatTheyDo)
      .map(([name, does]) => `- ${name}: ${does}`)
      .join("\n")}`,
  );
}

/** Prints a table in Markdown whose columns are aligned. */
function printMarkdown(header: readonly string[], lines: readonly (readonly string[])[]): void {
  const widths = header.map((_, column) => Math.max(3, ...[header, ...lines].map((line) => line[column]?.length ?? 0)));
  const write = (line: readonly string[]) =>
    console.log(`| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`);
  write(header);
  write(widths.map((width) => "-".repeat(width)));
  for (const line of lines) write(line);
}

function isWithin(rows: readonly Row[]): boolean {
  const unpaid = rows.filter(({ name, paid, payments }) => name === OURS && paid < payments);
  for (const { inFlight, failed } of unpaid) console.log(`\nMISSED: not paid at ${inFlight} in flight: ${failed[0]}`);
  const rate = (name: string, inFlight: number) =>
    rows.find((row) => row.name === name && row.inFlight === inFlight)?.perSecond;
  const slower = MUST_WIN_AT.filter((inFlight) => (rate(OURS, inFlight) ?? 0) < (rate(MANAGED, inFlight) ?? 0));
  if (slower.length > 0)
    console.log(`\nMISSED: the peer with a nonce manager is faster at ${slower.join(", ")} in flight`);
  return unpaid.length === 0 && slower.length === 0;
}
