import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { ask, getStatus, type Shop } from "../../local/buyer-client.ts";
import { newKey } from "../../local/networks-document.ts";
import { makeScratch } from "../../local/scratch-folder.ts";
import { mintUsdc } from "../../local/usdc.ts";
import { addCleanup } from "../support/cleanups.ts";
import { startChain, usdcBalance } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { fundSolanaBuyer, makeSolanaKeys, startTestSolana, tokenBalance } from "../support/test-solana.ts";

const [chain, solana] = await Promise.all([startChain(), startTestSolana({ slotMs: 400 })]);
const keys = await makeSolanaKeys(solana);
const fleet = await startFleet({ chain, solana: { chain: solana, keys }, workers: 1, ownUrl: true });
const buyer = newKey();
const solanaBuyer = await fundSolanaBuyer(solana);
await mintUsdc(chain.client, chain.contracts.token, [buyer.address], 1_000_000_000n);

const STACK_FILE = join(await makeScratch("wallet-example"), "stack.json");
const stack = {
  baseUrl: fleet.baseUrl,
  live: fleet.shop.caller,
  test: fleet.testShop.caller,
  evm: { chain: chain.id, buyers: [buyer] },
  solana: { chain: solana.id, buyers: [solanaBuyer] },
};
await writeFile(STACK_FILE, JSON.stringify(stack));

/** What each payment costs, in the smallest unit of the tokens. */
const price = 12_500_000n;

async function createPayment(shop: Shop) {
  const amount = { unit: "iso4217/USD", value: "1250" };
  const { id = "", gatewayUrl = "" } = (await ask(shop, "POST", "/v1/payments", { amount })) as Record<string, string>;
  return { id, link: gatewayUrl };
}

/** Runs the example with a file like that of the local stack, and returns what it prints. */
async function run(args: string[], answer = ""): Promise<{ code: number; stdout: string; stderr: string }> {
  const cwd = resolve("examples/wallet");
  const env = { ...process.env, STACK_FILE };
  return await new Promise((settle) => {
    const child = execFile(process.execPath, ["wallet.js", ...args], { cwd, env }, (error, stdout, stderr) =>
      settle({ code: Number(error?.code ?? 0), stdout, stderr }),
    );
    child.stdin?.end(answer);
  });
}

/** Pays a new payment's link with the example. */
async function pay(shop: Shop, family: "evm" | "solana") {
  const { id, link } = await createPayment(shop);
  const { stdout, stderr } = await run([link, family, "--yes"]);
  const status = await getStatus(shop, id);
  return { output: (stdout + stderr).trimEnd().split("\n").at(-1), status, txId: status.info?.txId };
}

test("the wallet pays a link with USDC on an EVM chain", async () => {
  const before = await usdcBalance(chain, buyer.address);
  const { output, txId } = await pay(fleet.shop, "evm");
  expect(output).toBe(`the payment is succeeded: transaction ${txId}`);
  expect(await usdcBalance(chain, buyer.address)).toBe(before - price);
});

test("the wallet pays a link with tokens on Solana", async () => {
  const before = await tokenBalance(solana, solanaBuyer.address);
  const { output, txId } = await pay(fleet.shop, "solana");
  expect(output).toBe(`the payment is succeeded: transaction ${txId}`);
  expect(await tokenBalance(solana, solanaBuyer.address)).toBe(before - price);
});

test("the wallet pays a link of test mode without moving money", async () => {
  const { status } = await pay(fleet.testShop, "evm");
  expect(status).toMatchObject({ status: "succeeded" });
});

test("the wallet shows the merchant and the amount, asks, and pays nothing unless its user agrees", async () => {
  const { id, link } = await createPayment(fleet.testShop);
  const { code, stdout, stderr } = await run([link], "n\n");
  expect(stdout).toMatch(/^"[^"]+" asks for 12\.5 USD\.\nYou pay 12\.5 USDC on .* from eip155:.*\nPay\? /);
  expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining("nothing is paid: ") });
  expect(await getStatus(fleet.testShop, id)).toMatchObject({ status: "requires_action" });
  expect((await run([link], "y\n")).code).toBe(0);
  expect(await getStatus(fleet.testShop, id)).toMatchObject({ status: "succeeded" });
  expect(await run([link])).toEqual({ code: 1, stdout: "", stderr: "nothing is paid: the payment is succeeded\n" });
});

test("the wallet asks nothing of the host that a link names, only of its own service", async () => {
  const asked: (string | undefined)[] = [];
  const other = createServer((request, response) => {
    asked.push(request.url);
    response.writeHead(404).end();
  });
  addCleanup(async () => void other.close().closeAllConnections());
  await new Promise<void>((done) => other.listen(0, "127.0.0.2", done));
  const { id } = await createPayment(fleet.testShop);
  const link = `http://127.0.0.2:${(other.address() as AddressInfo).port}/?pid=${id}`;
  const { code, stderr } = await run([link, "evm", "--yes"]);
  expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining("nothing is paid: ") });
  expect(asked).toEqual([]);
  expect(await getStatus(fleet.testShop, id)).toMatchObject({ status: "requires_action" });
});
