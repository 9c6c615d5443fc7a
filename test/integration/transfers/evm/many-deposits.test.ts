import { randomBytes } from "node:crypto";
import { encodeFunctionData, erc20Abi, toHex } from "viem";
import { expect, test } from "vitest";
import { transactByRows } from "../../../../db/savepoint.ts";
import { fundGas, mintUsdc, transferUsdc } from "../../../../local/usdc.ts";
import { recordBlocks } from "../../../../transfers/record-movements.ts";
import { fundBuyer, mine, networksFor, startChain, type TestChain } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { startRealisticProvider } from "../../../support/realistic-provider.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";
import { waitFor } from "../../../support/wait-for.ts";

const DEPOSITS = 60;

/** Includes deposits of one minor unit in one block, each in a transaction of its own. */
async function makeDeposits(chain: TestChain): Promise<void> {
  const { client, contracts, keys } = chain;
  const [account] = await client.getAddresses();
  if (!account) throw new Error("the chain has no account");
  await mintUsdc(client, contracts.token, [account], BigInt(DEPOSITS));
  const data = encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args: [keys.treasury.address, 1n] });
  const first = await client.getTransactionCount({ address: account });
  await client.setAutomine(false);
  for (let nonce = first; nonce < first + DEPOSITS; nonce += 1)
    await client.sendTransaction({ account, to: contracts.token, data, nonce, gas: 100_000n });
  await mine(chain);
}

/** Returns the chain's token as one of kind push. */
async function describePushed(chain: TestChain): Promise<Record<string, unknown>> {
  const {
    domain: _,
    bytesSignatures: _bytes,
    ...rest
  } = { ...(await networksFor(chain)).chains[0]?.assets[0] } as Record<string, unknown>;
  return { ...rest, kind: "push" };
}

test.each([
  ["eip3009", "eth_getTransactionReceipt", 1],
  ["eip3009", "eth_getTransactionReceipt", 12],
  ["push", "eth_getTransactionByHash", 1],
])(
  "sixty strangers' deposits of a token of kind %s are read with one %s each, although the provider allows thirty a second, among %d blocks",
  async (kind, method, blocks) => {
    const chain = await startChain();
    const provider = await startRealisticProvider({ target: chain.url });
    const change = kind === "push" ? { assets: [await describePushed(chain)] } : {};
    const fixture = await makeTransfersFixture(chain, { rpcUrls: [provider.url], change });
    await fixture.watch();
    await makeDeposits(chain);
    await mine(chain, blocks - 1);
    const head = Number(await chain.client.getBlockNumber());
    provider.setRules({ budget: { units: 600 } });
    const { calls, refused } = provider.counts;
    const before = calls[method] ?? 0;
    const hasRead = async () => {
      await fixture.watch().catch((error: unknown) => expect(error).toMatchObject({ transient: true }));
      return (await fixture.cursor()).number >= head;
    };
    await waitFor(hasRead, { within: 30_000, what: "the block of the deposits" });
    expect(refused["budget"]).toBeGreaterThan(0);
    // The rest was refused.
    expect((calls[method] ?? 0) - before - (refused["budget"] ?? 0)).toBeLessThanOrEqual(DEPOSITS);
    expect(await fixture.observations()).toHaveLength(DEPOSITS);
  },
);

test("after a reading that ended at a receipt, the endpoint is asked for one block before the receipts", async () => {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url] });
  const stranger = await fundBuyer(chain);
  await fundGas(chain.client, [stranger.address]);
  await fixture.watch();
  await transferUsdc(chain.client, chain.contracts.token, stranger, chain.keys.treasury.address, 7n);
  await mine(chain, 8);
  const head = Number(await chain.client.getBlockNumber());
  const error = { code: -32_603, message: "internal error" };
  proxy.fail(({ method }) => (method === "eth_getTransactionReceipt" ? error : undefined));
  const asked: number[] = [];
  for (let pass = 0; pass < 2; pass += 1) {
    const before = proxy.calls["eth_getLogs"] ?? 0;
    await expect(fixture.watch()).rejects.toThrow("internal error");
    asked.push((proxy.calls["eth_getLogs"] ?? 0) - before);
  }
  proxy.fail(undefined);
  await fixture.watch();
  expect((await fixture.cursor()).number).toBe(head);
  // Each block is asked for two kinds of logs.
  expect(asked).toEqual([18, 2]);
});

test("transactions that each make a thousand movements and use hundreds of authorizations are recorded", async () => {
  const { db, deps, evm } = await makeTransfersFixture(await startChain());
  const [token] = evm.tokens.values();
  if (!token) throw new Error("the chain has no token");
  // As many movements and authorizations as the gas of an Ethereum block allows in one transaction.
  const seen = Array.from({ length: 10 }, (_, block) => {
    const nonces = Array.from({ length: 250 }, () => toHex(randomBytes(32)));
    const [txHash, payer] = [toHex(randomBytes(32)), toHex(randomBytes(20))];
    const at = { blockId: toHex(randomBytes(32)), blockNumber: 100 + block, txHash };
    const moved = { token: token.token, payer, receiver: evm.treasury, amount: 1n };
    return Array.from({ length: 1_280 }, (_, logIndex) => ({
      ...at,
      ...moved,
      logIndex,
      authorizationNonce: nonces[logIndex] ?? null,
    }));
  }).flat();
  const unsolicited = async () => () => undefined;
  await transactByRows(db, (db, runRows) => recordBlocks(db, deps, evm, { seen, landed: [], unsolicited, runRows }));
  const { count } = await db
    .selectFrom("observation")
    .select(({ fn }) => fn.countAll<string>().as("count"))
    .executeTakeFirstOrThrow();
  expect(Number(count)).toBe(seen.length);
});
