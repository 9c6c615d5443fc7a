import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseEnv } from "node:util";
import type { Stack } from "../../local/stack.ts";
import { runAdmin } from "../../ops/admin/program.ts";

/** What the drill reads of an open exception. */
type Exception = { kind: string; id: number; txHash: string | null; asset: string; amount: string };

/** The exceptions that were assigned to the merchant or booked as losses, and those that are open at the time limit. */
export type Resolution = { assigned: Exception[]; losses: Exception[]; open: Exception[] };

/** Returns a function that runs a command of the operator with the stack's environment, and parses its JSON. */
export function openAdmin({ dir, adminLogin: { name: operator } }: Pick<Stack, "dir" | "adminLogin">) {
  return async <T>(...args: string[]): Promise<T> => {
    const env = parseEnv(await readFile(join(dir, "env"), "utf8"));
    let output = "";
    let errors = "";
    const code = await runAdmin([...args, "--json"], {
      env: { ...env, OPERATOR: operator },
      write: (text) => {
        output += text;
      },
      writeError: (text) => {
        errors += text;
      },
    });
    if (code !== 0) throw new Error(`admin ${args.join(" ")} failed: ${errors}`);
    return JSON.parse(output) as T;
  };
}

/**
 * Closes the exceptions of a restored database as docs/operations/drill.md says, until none is open and `isSettled`: the money
 * of forgotten payments is assigned to the merchant, so that its next settlements adopt the forgotten payouts; and what lanes
 * have spent on forgotten transactions is a loss. Payouts without an owner are left open, for the next settlements to adopt.
 */
export async function resolveExceptions(args: {
  admin: ReturnType<typeof openAdmin>;
  /** A payment of the merchant. */
  paymentId: string;
  isSettled: () => Promise<boolean>;
  withinMs: number;
}): Promise<Resolution> {
  const { admin, paymentId, isSettled, withinMs } = args;
  const until = performance.now() + withinMs;
  const closed: Omit<Resolution, "open"> = { assigned: [], losses: [] };
  for (;;) {
    const open = await admin<Exception[]>("exceptions", "list");
    for (const exception of open.filter(isMoneyOfForgotten)) {
      await admin("exceptions", "assign", String(exception.id), "--payment", paymentId, "--unnamed");
      closed.assigned.push(exception);
    }
    for (const exception of open.filter(isLaneFee)) {
      const note = "fees of transactions that the restore has forgotten";
      await admin("ledger", "book-loss", String(exception.id), "--note", note);
      closed.losses.push(exception);
    }
    if ((open.length === 0 && (await isSettled())) || performance.now() > until) return { ...closed, open };
    await pause(500);
  }
}

const isMoneyOfForgotten = ({ kind }: Exception) => kind === "unknown";
/** Native money that a lane lacks has no transaction of its own. */
const isLaneFee = ({ kind, asset }: Exception) => kind === "left" && asset.includes("/slip44:");
