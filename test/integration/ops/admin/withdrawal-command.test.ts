import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isSignedBy, readStatement } from "../../../../signer/statements.ts";
import { withdrawalFile } from "../../../../signer/withdraw-capital.ts";
import { adminIn } from "../../../support/admin.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { networksFileFor, startChain } from "../../../support/evm-chain.ts";
import { createDatabase } from "../../../support/test-database.ts";

const chain = await startChain();
const admin = adminIn({
  DATABASE_URL: await createDatabase(),
  NETWORKS_FILE: await networksFileFor(chain),
  OPERATOR: "anna",
});
const folder = await mkdtemp(join(tmpdir(), "withdrawal-"));
addCleanup(() => rm(folder, { recursive: true, force: true }));

test("what approve-withdrawal prints is an approval as the file of signer withdraw takes it", async () => {
  const key = join(folder, "anna.key");
  const made = await admin("operator-keys", "new", key, "--json");
  const { publicKey } = JSON.parse(made.stdout) as { publicKey: string };
  const of = { asset: chain.asset, amount: "5", receiver: `0x${"d4".repeat(20)}`, reference: "RENT-1" };
  const options = Object.entries(of).flatMap(([name, value]) => [`--${name}`, value]);
  const { code, stdout } = await admin("payouts", "approve-withdrawal", ...options, "--sign", key, "--as", "anna");
  expect(code).toBe(0);
  const { approvals } = withdrawalFile.parse({ ...of, approvals: [JSON.parse(stdout)] });
  expect(approvals.map((one) => [one.signer, isSignedBy(publicKey, one)])).toEqual([["anna", true]]);
  expect(readStatement(approvals[0]?.text ?? "")?.subject).toMatchObject({
    action: "withdraw capital",
    reference: "RENT-1",
  });
});
