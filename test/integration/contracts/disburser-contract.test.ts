import { type Hex, keccak256, maxUint256, numberToHex, parseEventLogs, toHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { encodeCollect, permitTransferTypedData } from "../../../chains/evm/collector-contract.ts";
import {
  type Disbursement,
  disburserAbi,
  disburserCode,
  encodeDisburse,
  encodeDisburserDeployment,
  hashDisbursement,
} from "../../../chains/evm/disburser-contract.ts";
import { type Call, encodeMulticall } from "../../../chains/evm/multicall.ts";
import { joinSignature, splitSignature } from "../../../chains/evm/signature.ts";
import { newKey } from "../../../local/networks-document.ts";
import { startChain } from "../../support/evm-chain.ts";
import { deployCollector, deployDisburser, deployTestContract, testContract } from "../../support/test-contracts.ts";

const chain = await startChain();
const { client } = chain;
const chainId = await client.getChainId();
const owner = privateKeyToAccount(newKey().privateKey);
const treasury = owner.address.toLowerCase() as Hex;
const disburser = await deployDisburser(client, treasury);
await client.setBalance({ address: owner.address, value: 10n ** 18n });

let count = 0;
const nonceOf = (what: string) => keccak256(toHex(`${what} ${count++}`));

/** Deploys a token of which the treasury holds 1,000 units, all approved for the Disburser. */
async function setUp(name = "PermitToken") {
  const token = await deployTestContract(client, "Tokens", name);
  const { abi } = testContract("Tokens", name);
  const write = async (functionName: string, args: unknown[], account = client.account) => {
    const hash = await client.writeContract({ account, address: token, abi, functionName, args });
    await client.waitForTransactionReceipt({ hash });
  };
  await write("mint", [treasury, 1_000n]);
  await write("approve", [disburser, maxUint256], owner as never);
  const balance = (of: Hex) =>
    client.readContract({ address: token, abi, functionName: "balanceOf", args: [of] }) as Promise<bigint>;
  return { token, write, balance };
}

const payoutOf = (token: Hex, amount = 100n): Disbursement => ({
  token,
  amount,
  receiver: newKey().address.toLowerCase() as Hex,
  nonce: nonceOf("payout"),
});

const sign = (payout: Disbursement, by = owner, at = { chainId, disburser }) =>
  by.sign({ hash: hashDisbursement(at, payout) });

/** Sends call data from an unrelated account and returns the receipt. Throws if the call would revert. */
async function send(data: Hex) {
  await client.call({ to: disburser, data });
  const hash = await client.sendTransaction({ to: disburser, data, gas: 1_000_000n });
  return client.waitForTransactionReceipt({ hash });
}

/** Returns the name of the custom error that call data reverts with. */
async function refusal(data: Hex): Promise<string | undefined> {
  const [from] = await client.getAddresses();
  const answer = await fetch(chain.url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "eth_call",
      params: [{ from, to: disburser, data }, "latest"],
    }),
  });
  const { error } = (await answer.json()) as { error?: { data?: Hex } };
  const selector = error?.data?.slice(0, 10);
  return disburserAbi.find(
    (one) =>
      one.type === "error" &&
      keccak256(toHex(`${one.name}(${one.inputs.map(({ type }) => type)})`)).startsWith(selector ?? "none"),
  )?.name as string | undefined;
}

test("the deployed code equals the compiled code with this treasury, and each treasury has its own contract", async () => {
  expect(await client.getCode({ address: disburser })).toBe(disburserCode(treasury));
  expect(await deployDisburser(client, newKey().address)).not.toBe(disburser);
  await expect(client.sendTransaction(encodeDisburserDeployment(treasury))).rejects.toThrow();
});

test("any account may submit a signed payout, and the receiver gets exactly its amount", async () => {
  const { token, balance } = await setUp();
  const payout = payoutOf(token);
  const receipt = await send(encodeDisburse(payout, await sign(payout)));
  expect(await balance(payout.receiver)).toBe(100n);
  const [event] = parseEventLogs({ abi: disburserAbi, logs: receipt.logs, eventName: "Disbursed" });
  expect(event?.args).toMatchObject({ nonce: payout.nonce, amount: 100n });
  expect(event?.args.receiver.toLowerCase()).toBe(payout.receiver);
});

test("a nonce is paid once, whatever the treasury signs later", async () => {
  const { token, balance } = await setUp();
  const payout = payoutOf(token);
  const data = encodeDisburse(payout, await sign(payout));
  await send(data);
  expect(await refusal(data)).toBe("NonceUsed");
  const other = await setUp();
  for (const changed of [
    { ...payout, amount: 50n },
    { ...payout, receiver: newKey().address.toLowerCase() as Hex },
    { ...payout, token: other.token },
  ])
    expect(await refusal(encodeDisburse(changed, await sign(changed)))).toBe("NonceUsed");
  expect(await balance(treasury)).toBe(900n);
});

test("the same payout twice in one transaction is paid once", async () => {
  const { token, balance } = await setUp();
  const payout = payoutOf(token);
  const data = encodeDisburse(payout, await sign(payout));
  const calls = [0, 1].map(() => ({ target: disburser, data }));
  const hash = await client.sendTransaction({ to: chain.contracts.multicall, data: encodeMulticall(calls) });
  await client.waitForTransactionReceipt({ hash });
  expect(await balance(payout.receiver)).toBe(100n);
});

test("a signature is refused for another receiver, amount, token or nonce", async () => {
  const { token, balance } = await setUp();
  const other = await setUp();
  const payout = payoutOf(token);
  const signature = await sign(payout);
  for (const changed of [
    { ...payout, receiver: newKey().address.toLowerCase() as Hex },
    { ...payout, amount: 99n },
    { ...payout, amount: 101n },
    { ...payout, token: other.token },
    { ...payout, nonce: nonceOf("another") },
  ])
    expect(await refusal(encodeDisburse(changed, signature))).toBe("NotSigned");
  expect(await balance(treasury)).toBe(1_000n);
});

test("a signature by another key, for another chain or contract, or in a malleated form is refused", async () => {
  const { token, balance } = await setUp();
  const payout = payoutOf(token);
  const stranger = privateKeyToAccount(newKey().privateKey);
  const own = await sign(payout);
  const { r, s, v } = splitSignature(own);
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  const malleated = joinSignature({ r, s: numberToHex(order - BigInt(s), { size: 32 }), v: v === 27 ? 28 : 27 });
  for (const signature of [
    await sign(payout, stranger),
    await sign(payout, owner, { chainId: chainId + 1, disburser }),
    await sign(payout, owner, { chainId, disburser: newKey().address }),
    malleated,
    joinSignature({ r, s, v: v + 2 }),
    joinSignature({ r: numberToHex(0, { size: 32 }), s: numberToHex(0, { size: 32 }), v: 27 }),
  ])
    expect(await refusal(encodeDisburse(payout, signature))).toBe("NotSigned");
  expect(await balance(treasury)).toBe(1_000n);
  // None of these calls has used the nonce.
  await send(encodeDisburse(payout, own));
  expect(await balance(payout.receiver)).toBe(100n);
});

test("a token that keeps a fee pays nothing, because the receiver would get less than the signed amount", async () => {
  const { token, balance } = await setUp("FeeToken");
  const payout = payoutOf(token);
  expect(await refusal(encodeDisburse(payout, await sign(payout)))).toBe("WrongAmount");
  expect(await balance(treasury)).toBe(1_000n);
});

test("a token that returns false pays nothing, even if it moved the money, and a token that returns nothing pays", async () => {
  for (const name of ["RefusingToken", "LyingToken"]) {
    const { token, balance } = await setUp(name);
    const payout = payoutOf(token);
    expect(await refusal(encodeDisburse(payout, await sign(payout)))).toBe("TransferRefused");
    expect(await balance(treasury)).toBe(1_000n);
  }
  const { token, balance } = await setUp("ZeroFirstToken");
  const payout = payoutOf(token);
  await send(encodeDisburse(payout, await sign(payout)));
  expect(await balance(payout.receiver)).toBe(100n);
});

test("a payout of an address without code pays nothing and does not use its nonce", async () => {
  const payout = payoutOf(`0x${"99".repeat(20)}`);
  await expect(send(encodeDisburse(payout, await sign(payout)))).rejects.toThrow();
  const args = [payout.nonce] as const;
  expect(await client.readContract({ address: disburser, abi: disburserAbi, functionName: "used", args })).toBe(false);
});

test("a token that re-enters the Disburser cannot pay a nonce twice", async () => {
  const { token, write, balance } = await setUp("ReenteringToken");
  const [outer, inner] = [payoutOf(token), payoutOf(token)];
  const call = async (payout: Disbursement) => encodeDisburse(payout, await sign(payout));
  await write("arm", [disburser, await call(outer)]);
  await send(await call(outer));
  expect(await balance(outer.receiver)).toBe(100n);
  // The inner call pays the same receiver: the outer call sees both amounts arrive and reverts both.
  const same = { ...payoutOf(token), receiver: inner.receiver };
  await write("arm", [disburser, await call(same)]);
  expect(await refusal(await call(inner))).toBe("WrongAmount");
  expect(await balance(inner.receiver)).toBe(0n);
});

test("a payout without approval or without money in the treasury does not use its nonce", async () => {
  const { token, write, balance } = await setUp();
  const payout = payoutOf(token, 1_001n);
  const data = encodeDisburse(payout, await sign(payout));
  await expect(send(data)).rejects.toThrow();
  await write("approve", [disburser, 0n], owner as never);
  await write("mint", [treasury, 1n]);
  await expect(send(data)).rejects.toThrow();
  await write("approve", [disburser, maxUint256], owner as never);
  await send(data);
  expect(await balance(payout.receiver)).toBe(1_001n);
});

/** Makes calls in one transaction and returns the gas per call. */
async function gasPerCall(calls: readonly Call[]): Promise<bigint> {
  const data = encodeMulticall(calls);
  const hash = await client.sendTransaction({ to: chain.contracts.multicall, data, gas: 5_000_000n });
  return (await client.waitForTransactionReceipt({ hash })).gasUsed / BigInt(calls.length);
}

/**
 * Returns a payout by the rejected design: the treasury signs for Permit2 with a contract of ours (a Collector) as
 * spender.
 */
async function callPermit2(permit2: Hex, token: Hex): Promise<Call> {
  const parts = { permit2, treasury: newKey().address.toLowerCase() as Hex };
  const collector = await deployCollector(client, parts);
  const permit = { token, amount: 10n, nonce: nonceOf("permit"), deadline: 4_102_444_800 };
  const signature = await owner.signTypedData(permitTransferTypedData({ chainId, permit2, collector }, permit));
  return { target: collector, data: encodeCollect(treasury, permit, signature) };
}

test("a payout in a batch costs less gas than a single one, and no more than by Permit2 (docs/decisions/disburser.md)", async () => {
  const { token, write } = await setUp();
  const [first, ...others] = Array.from({ length: 21 }, () => payoutOf(token, 10n));
  if (!first) throw new Error("there is no payout");
  const single = (await send(encodeDisburse(first, await sign(first)))).gasUsed;
  const disburse = async (payout: Disbursement) => ({
    target: disburser,
    data: encodeDisburse(payout, await sign(payout)),
  });
  const batched = await gasPerCall(await Promise.all(others.map(disburse)));
  const hash = await client.writeContract({
    account: owner,
    address: token,
    abi: testContract("Tokens", "PermitToken").abi,
    functionName: "transfer",
    args: [newKey().address, 1n],
  });
  const pushed = (await client.waitForTransactionReceipt({ hash })).gasUsed;
  const permit2 = await deployTestContract(client, "Permit2", "Permit2");
  await write("approve", [permit2, maxUint256], owner as never);
  const calls: Call[] = [];
  for (let index = 0; index < 20; index += 1) calls.push(await callPermit2(permit2, token));
  const byPermit2 = await gasPerCall(calls);
  expect(pushed).toBeLessThan(batched);
  expect(batched).toBeLessThan(single);
  expect(batched).toBeLessThanOrEqual(byPermit2);
});
