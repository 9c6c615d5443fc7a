import {
  decodeFunctionData,
  decodeFunctionResult,
  encodeFunctionResult,
  type Hex,
  hexToNumber,
  numberToHex,
  type PrivateKeyAccount,
  parseAbi,
  slice,
  type TypedDataDefinition,
  toFunctionSelector,
} from "viem";
import { describe, expect, test } from "vitest";
import { AUTHORIZATION_USED_TOPIC, multicallAbi } from "../../../../chains/evm/abi.ts";
import { insertObservations } from "../../../../db/queries/observations.ts";
import { createBookingHandlers } from "../../../../payments/lifecycle/book-transfers.ts";
import type { OptionView } from "../../../../payments/views.ts";
import { recordBlocks } from "../../../../transfers/record-movements.ts";
import { watchChain } from "../../../../transfers/watch-pass.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, mine, startChain, type TestChain, usdcBalance } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, signOption, walletActions } from "../../../support/merchant-fixture.ts";
import { plantPredeploy } from "../../../support/rollup-predeploys.ts";
import { startTokenKinds } from "../../../support/token-kinds.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

const abi = parseAbi([
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
  "function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
]);
type Message = { from: Hex; to: Hex; validBefore: Hex; nonce: Hex };
const split = (signature: Hex) =>
  [hexToNumber(slice(signature, 64)), slice(signature, 0, 32), slice(signature, 32, 64)] as const;
const typedDataOf = (option: OptionView) =>
  JSON.parse(String(walletActions(option)[0]?.params[1])) as TypedDataDefinition & { message: Message };

async function sendFromPayer(chain: TestChain, call: object): Promise<void> {
  const hash = await chain.client.writeContract({ address: chain.contracts.token, abi, ...call } as never);
  const { status } = await chain.client.waitForTransactionReceipt({ hash });
  if (status !== "success") throw new Error("the payer's own use of the nonce was reverted");
}

/** Uses the payment's nonce for another authorization of one unit, which the payer signs and a third party relays. */
async function useForOneUnit(chain: TestChain, option: OptionView, buyer: PrivateKeyAccount): Promise<void> {
  const typed = typedDataOf(option);
  const { from, to, validBefore, nonce } = typed.message;
  const signature = await buyer.signTypedData({ ...typed, message: { ...typed.message, value: "0x1" } } as never);
  const args = [from, to, 1n, 0n, BigInt(validBefore), nonce, ...split(signature)];
  await sendFromPayer(chain, { functionName: "transferWithAuthorization", args });
}

async function cancel(chain: TestChain, option: OptionView, buyer: PrivateKeyAccount): Promise<void> {
  const { domain, message } = typedDataOf(option);
  const CancelAuthorization = [
    { name: "authorizer", type: "address" },
    { name: "nonce", type: "bytes32" },
  ];
  const signature = await buyer.signTypedData({
    domain,
    types: { CancelAuthorization },
    primaryType: "CancelAuthorization",
    message: { authorizer: message.from, nonce: message.nonce },
  } as never);
  await sendFromPayer(chain, {
    functionName: "cancelAuthorization",
    args: [message.from, message.nonce, ...split(signature)],
  });
}

const ways = [
  ["used its nonce for another authorization of one unit", useForOneUnit, 1n],
  ["cancelled it", cancel, 0n],
] as const;

describe.each(ways)("a payer that has %s", (_what, invalidate, arrived) => {
  test("a payment whose authorization is used up after the confirm expires with its authorization, and not earlier", async () => {
    const chain = await startChain();
    const fixture = await makeMerchantFixture(chain);
    const buyer = await fundBuyer(chain);
    const paymentId = await fixture.create();
    const [option] = await fixture.offer(paymentId, buyer);
    if (!option) throw new Error("there is no way to pay");
    await fixture.verify(await fixture.attempt(paymentId, buyer));
    await invalidate(chain, option, buyer);
    await fixture.relay();
    await fixture.watch();
    expect((await fixture.status(paymentId)).state).toBe("processing");

    await chain.client.increaseTime({ seconds: 7_200 });
    await mine(chain, 2);
    await fixture.watch();
    expect((await fixture.status(paymentId)).state).toBe("expired");
    expect((await fixture.transfers()).map((row) => row.state)).toEqual(["ended"]);
    expect(fixture.announced.at(-1)).toBe(paymentId);
    expect(await fixture.db.selectFrom("transaction").select("nonce").execute()).toEqual([]);
    expect(await usdcBalance(chain, chain.keys.treasury.address)).toBe(arrived);
  });

  test("a confirm whose authorization is used up before it is refused, and the payment waits for a valid one", async () => {
    const chain = await startChain();
    const fixture = await makeMerchantFixture(chain);
    const [buyer, other] = [await fundBuyer(chain), await fundBuyer(chain)];
    const paymentId = await fixture.create();
    const [option] = await fixture.offer(paymentId, buyer);
    if (!option) throw new Error("there is no way to pay");
    const results = await signOption(option, buyer);
    await invalidate(chain, option, buyer);
    await fixture.watch();
    const confirmed = await fixture.confirm(paymentId, option.id, results);
    const attemptId = (confirmed.ok && confirmed.value.attemptId) || "";
    await fixture.verify(attemptId);
    expect(await fixture.verificationResult(attemptId)).toMatchObject({
      refused: expect.stringContaining("used or canceled"),
    });
    expect((await fixture.status(paymentId)).state).toBe("requires_action");

    await fixture.verify(await fixture.attempt(paymentId, other));
    await fixture.relay();
    await fixture.watch();
    expect((await fixture.status(paymentId)).state).toBe("succeeded");
  });
});

test("a token that no longer responds does not keep the transfers of other tokens from ending", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const [broken, fine] = [await fixture.create(100n), await fixture.create(200n)];
  for (const id of [broken, fine]) await fixture.verify(await fixture.attempt(id, await fundBuyer(chain)));
  // The token's contract no longer exists.
  const other = await fixture.db
    .selectFrom("transfer")
    .selectAll()
    .where("payment_id", "=", broken)
    .executeTakeFirstOrThrow();
  await fixture.db
    .updateTable("transfer")
    .set({ token: `0x${"de".repeat(20)}` })
    .where("id", "=", other.id)
    .execute();
  await chain.client.increaseTime({ seconds: 7_200 });
  await mine(chain, 2);
  await expect(fixture.watch()).rejects.toMatchObject({ code: "rpc_answer" });
  expect([(await fixture.status(broken)).state, (await fixture.status(fine)).state]).toEqual(["processing", "expired"]);
});

/** Makes the members of a multicall that read `block.number` return another number, as on Arbitrum. */
function alterBlockNumbers(proxy: Awaited<ReturnType<typeof startAlteringProxy>>, parentNumber: number) {
  const [selector, functionName] = [toFunctionSelector("getBlockNumber()"), "tryAggregate" as const];
  proxy.alter((method, [call], result) => {
    const { data } = (call ?? {}) as { data?: Hex };
    if (method !== "eth_call" || !data?.startsWith(toFunctionSelector(multicallAbi[0]))) return result;
    const [, members] = decodeFunctionData({ abi: multicallAbi, data }).args;
    const outcomes = decodeFunctionResult({ abi: multicallAbi, functionName, data: result as Hex });
    const altered = outcomes.map((outcome, index) =>
      members[index]?.callData === selector
        ? { ...outcome, returnData: numberToHex(parentNumber, { size: 32 }) }
        : outcome,
    );
    return encodeFunctionResult({ abi: multicallAbi, functionName, result: altered });
  });
}

test("an authorization expires on Arbitrum, where contracts see the parent chain's block numbers", async () => {
  const chain = await startChain();
  const setCharge = await plantPredeploy(chain, "NodeInterface");
  await setCharge(1n, 0n);
  await plantPredeploy(chain, "ArbSys");
  const proxy = await startAlteringProxy({ target: chain.url });
  alterBlockNumbers(proxy, 1);
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url], change: { feeModel: "arbitrum" } });
  const validBefore = Number((await chain.client.getBlock()).timestamp) + 60;
  const one = await fixture.sign(await fundBuyer(chain), 1n, { validBefore });
  await chain.client.increaseTime({ seconds: 120 });
  await mine(chain, 2);
  await fixture.watch();
  expect(await fixture.statesOf([one.id])).toEqual(["ended"]);
});

test("a Permit2 signature is valid in the second of its deadline, and an EIP-3009 authorization no longer", async () => {
  const { chain, change } = await startTokenKinds({ collector: false });
  const fixture = await makeTransfersFixture(chain, { change: { ...change, finality: { blocks: 1 } } });
  const validBefore = Number((await chain.client.getBlock()).timestamp) + 60;
  const buyer = await fundBuyer(chain);
  const ids: string[] = [];
  for (const kind of ["permit2", "eip3009"] as const) {
    const { id } = await fixture.sign(buyer, 1n, { validBefore });
    await fixture.db.updateTable("transfer").set({ kind }).where("id", "=", id).execute();
    ids.push(id);
  }
  const statesAt = async (timestamp: number) => {
    await chain.client.setNextBlockTimestamp({ timestamp: BigInt(timestamp) });
    await mine(chain);
    for (let pass = 0; pass < 2; pass += 1) await fixture.watch();
    return fixture.statesOf(ids);
  };
  expect(await statesAt(validBefore)).toEqual(["ready", "ended"]);
  expect(await statesAt(validBefore + 1)).toEqual(["ended", "ended"]);
});

test("transfers that cannot be decided, more than one pass checks, do not keep later ones from ending", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain);
  const buyer = await fundBuyer(chain);
  const soon = Number((await chain.client.getBlock()).timestamp) + 1_000;
  const broken: string[] = [];
  for (let count = 0; count < 51; count += 1) broken.push((await fixture.sign(buyer, 1n, { validBefore: soon })).id);
  const fine = await fixture.sign(buyer, 1n, { validBefore: soon + 1 });
  const setToken = (token: string) =>
    fixture.db.updateTable("transfer").set({ token }).where("id", "in", broken).execute();
  const [{ token = "" } = {}] = await fixture.rowsOf([fine.id]);
  await setToken(`0x${"de".repeat(20)}`);
  await chain.client.increaseTime({ seconds: 1_100 });
  await mine(chain, 2);
  for (let pass = 0; pass < 2; pass += 1) await expect(fixture.watch()).rejects.toMatchObject({ code: "rpc_answer" });
  expect(new Set(await fixture.statesOf(broken))).toEqual(new Set(["ready"]));
  expect(await fixture.statesOf([fine.id])).toEqual(["ended"]);

  // They have their turn again.
  await setToken(token);
  for (let pass = 0; pass < 2; pass += 1) await fixture.watch();
  expect(new Set(await fixture.statesOf(broken))).toEqual(new Set(["ended"]));
});

/** A chain whose logs are read five blocks at a time, an expired payment whose authorization is cancelled, and another one. */
async function startLongSearch() {
  const chain = await startChain();
  const proxy = await startAlteringProxy({ target: chain.url });
  const fixture = await makeMerchantFixture(chain, { rpcUrls: [proxy.url], change: { logRange: 5 } });
  const buyer = await fundBuyer(chain);
  const [cancelled, unused] = [await fixture.create(100n), await fixture.create(200n)];
  const [option] = await fixture.offer(cancelled, buyer);
  if (!option) throw new Error("there is no way to pay");
  for (const id of [cancelled, unused]) await fixture.verify(await fixture.attempt(id, buyer));
  await cancel(chain, option, buyer);
  await chain.client.increaseTime({ seconds: 7_200 });
  await mine(chain, 60);
  const statesOf = (ids: readonly string[]) => Promise.all(ids.map(async (id) => (await fixture.status(id)).state));
  const searched: number[] = [];
  /** Calls `on` before each answer to a search, and notes from which block on it searched. */
  const watchSearches = (on: () => void) =>
    proxy.alter((method, [filter], result) => {
      const { topics, fromBlock } = (filter ?? {}) as { topics?: string[][]; fromBlock?: Hex };
      if (method === "eth_getLogs" && topics?.[0]?.[0] === AUTHORIZATION_USED_TOPIC) {
        searched.push(Number(fromBlock));
        on();
      }
      return result;
    });
  return { chain, fixture, cancelled, unused, statesOf, searched, watchSearches };
}

test("a long search for a movement takes one call of a pass that must end, goes on in the next one, and delays no other transfer", async () => {
  const { fixture, cancelled, unused, statesOf, searched, watchSearches } = await startLongSearch();
  watchSearches(() => undefined);
  await fixture.watch();
  expect(await statesOf([cancelled, unused])).toEqual(["processing", "expired"]);
  expect(searched).toHaveLength(1);
  for (let pass = 2; (await statesOf([cancelled]))[0] === "processing"; pass += 1) {
    await fixture.watch();
    expect(searched).toHaveLength(pass);
  }
  expect(await statesOf([cancelled])).toEqual(["expired"]);
  expect(searched.at(-1)).toBe(0);
  expect(searched).toEqual([...new Set(searched)].sort((a, b) => b - a));
  expect(searched.length).toBeGreaterThan(10);
});

test("a long search for a movement ends after a time in each pass", async () => {
  const { chain, fixture, cancelled, statesOf, searched, watchSearches } = await startLongSearch();
  await fixture.watch();
  // Only the searches move the clock, so that a slow machine makes no fewer of them.
  fixture.clock.stop();
  watchSearches(() => fixture.clock.advance(1_000));
  await watchChain(fixture.deps, {
    chain: chain.id,
    signal: new AbortController().signal,
    handlers: createBookingHandlers(fixture.deps),
  });
  expect(searched).toHaveLength(2);
  expect(await statesOf([cancelled])).toEqual(["processing"]);
});

test("a movement that is booked as an exception proves no transfer when it is recorded again", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain);
  const one = await fixture.sign(await fundBuyer(chain));
  const [row] = await fixture.rowsOf([one.id]);
  if (!row) throw new Error("no row");
  const { token, payer, receiver, amount, authorization_nonce } = row;
  const moved = { token, payer, receiver, amount };
  const place = { chain: chain.id, block_id: "0x01", block_number: 1, tx_hash: "0x02", log_index: 0 };
  const booked = { ...place, ...moved, authorization_nonce, transfer_id: null, booked: true };
  await insertObservations(fixture.db, [{ ...booked, observed_at: fixture.deps.now() }]);
  const log = { blockId: "0x01", blockNumber: 1, txHash: "0x02", logIndex: 0, ...moved };
  const seen = [{ ...log, authorizationNonce: authorization_nonce }];
  const reading = { seen, landed: [], unsolicited: async () => () => undefined };
  await fixture.db.transaction().execute((db) => recordBlocks(db, fixture.deps, fixture.evm, reading));
  expect(await fixture.statesOf([one.id])).toEqual(["ready"]);
});
