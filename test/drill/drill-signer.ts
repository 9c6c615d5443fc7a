import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Stack } from "../../local/stack.ts";
import { execute } from "../support/execute-sql.ts";
import type { openAdmin } from "./resolve-exceptions.ts";

/** A separate signer: what its store knows, and the two operators who approve what leaves for no merchant. */
export type DrillSigner = {
  /** Returns true if the signer has verified the money of an exception as a deposit of a merchant. */
  isDeposit(exceptionId: number): Promise<boolean>;
  /** Signs both operators' approvals of each return that waits for them. */
  approveReturns(): Promise<void>;
};

const names = ["alice", "bob"];

/** Makes the operators' keys and adds them to the limits file of the stack's signer. */
export async function openDrillSigner(
  { dir, postgres }: Pick<Stack, "dir" | "postgres">,
  admin: ReturnType<typeof openAdmin>,
): Promise<DrillSigner> {
  const operators: { name: string; publicKey: string }[] = [];
  const keyOf = (name: string) => join(dir, `${name}.key`);
  for (const name of names) {
    await rm(keyOf(name), { force: true });
    const { publicKey } = await admin<{ publicKey: string }>("operator-keys", "new", keyOf(name));
    operators.push({ name, publicKey });
  }
  const limits = join(dir, "limits.jsonc");
  await writeFile(limits, JSON.stringify({ ...JSON.parse(await readFile(limits, "utf8")), operators }));
  const approved = new Set<string>();
  return {
    async isDeposit(exceptionId) {
      const sql = `select concat_ws(' ', chain, tx_hash, log_index) as place from ledger_group where id = ${exceptionId}`;
      const [group] = await execute(postgres.url, sql);
      const store = new DatabaseSync(join(dir, "signer.sqlite"), { readOnly: true });
      try {
        const deposit = store.prepare("select 1 from deposit where concat_ws(' ', chain, tx_hash, log_index) = ?");
        return deposit.get(String(group?.["place"])) !== undefined;
      } finally {
        store.close();
      }
    },
    async approveReturns() {
      const waiting = await admin<{ refundId: string; paymentId: string | null }[]>("refunds", "list");
      for (const { refundId, paymentId } of waiting) {
        if (paymentId !== null || approved.has(refundId)) continue;
        for (const name of names) await admin("refunds", "approve", refundId, "--sign", keyOf(name), "--as", name);
        approved.add(refundId);
      }
    },
  };
}
