import { rm } from "node:fs/promises";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { freePort, requireFreePort } from "../../../local/free-ports.ts";
import { makeScratch } from "../../../local/scratch-folder.ts";
import { findRunningStack, removeStackFile, type StackFile, writeStackFile } from "../../../local/stack-file.ts";
import { addCleanup } from "../../support/cleanups.ts";

const caller = { apiKey: "svc_test_x", appId: "app", merchantId: "mrch_1" };
const content: StackFile = {
  baseUrl: "http://127.0.0.1:8080",
  adminUrl: "http://127.0.0.1:8081",
  metricsUrls: [],
  postgresUrl: "postgres://127.0.0.1/pay",
  redisUrl: "redis://127.0.0.1",
  live: caller,
  test: caller,
  evm: {
    chain: "eip155:31337",
    rpcUrl: "http://127.0.0.1:8545",
    asset: "eip155:31337/erc20:0x01",
    token: "0x01",
    treasury: "0x02",
    relayers: ["0x03"],
    destination: "eip155:31337:0x04",
    buyers: [],
  },
  solana: {
    chain: "solana:11111111111111111111111111111111",
    rpcUrl: "http://127.0.0.1:8899",
    asset: "solana:11111111111111111111111111111111/token:22",
    mint: "22",
    treasury: "33",
    destination: "solana:11111111111111111111111111111111:44",
    buyers: [],
  },
  processes: { supervisor: process.pid, api: [], workers: [], signer: [] },
};

async function folder(): Promise<string> {
  const dir = await makeScratch("stack-file");
  addCleanup(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

test("a stack is found by its file while its supervisor lives, and not after the file is removed", async () => {
  const dir = await folder();
  expect(await findRunningStack(dir)).toBeUndefined();
  await writeStackFile(dir, content);
  expect(await findRunningStack(dir)).toEqual(content);
  await removeStackFile(dir);
  expect(await findRunningStack(dir)).toBeUndefined();
});

test("a file that a dead supervisor left behind is ignored", async () => {
  const dir = await folder();
  await writeStackFile(dir, { ...content, processes: { ...content.processes, supervisor: 2 ** 30 } });
  expect(await findRunningStack(dir)).toBeUndefined();
});

test("an occupied port is named together with the variable that changes it", async () => {
  const port = await freePort();
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  addCleanup(() => server.close());
  await expect(requireFreePort(port, "the api", "PORT")).rejects.toThrow(
    `port ${port} for the api is in use: stop the process that listens there, or set PORT to another port`,
  );
});
