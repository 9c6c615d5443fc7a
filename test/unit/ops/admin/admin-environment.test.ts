import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { writeEnvironment } from "../../../../local/stack-file.ts";

const dir = await mkdtemp(join(tmpdir(), "a stack "));
afterAll(() => rm(dir, { recursive: true, force: true }));
const cwd = fileURLToPath(new URL("../../../../", import.meta.url));

test("npm run admin reads the environment of the stack that STACK_DIR names", async () => {
  const rpc = [{ name: "one", url: "http://127.0.0.1:1" }];
  const key = { env: "KEY" };
  const owner = { address: "11111111111111111111111111111112", key };
  const chain = "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp";
  const asset = {
    asset: `${chain}/token:${owner.address}`,
    symbol: "USDC",
    name: "USDC",
    decimals: 6,
    peg: "iso4217/USD",
  };
  const network = {
    chain,
    name: "Solana",
    rpc: [...rpc, { ...rpc[0], name: "two" }],
    pollMs: 400,
    finality: "confirmed",
  };
  const accounts = { maxPriorityFee: "1", treasury: owner, lanes: [owner], assets: [asset] };
  const networksFile = join(dir, "networks.json");
  await writeFile(networksFile, JSON.stringify({ deployment: "test", chains: [{ ...network, ...accounts }] }));
  await writeEnvironment(dir, { DATABASE_URL: "postgres://127.0.0.1:1/none", NETWORKS_FILE: networksFile });
  const { DATABASE_URL, NETWORKS_FILE, ...env } = process.env;
  const run = promisify(execFile)("npm", ["run", "--silent", "admin", "--", "networks", "check"], {
    cwd,
    env: { ...env, STACK_DIR: dir },
  });
  expect((await run).stdout).toContain(`${chain}  1 endpoint\n`);
});
