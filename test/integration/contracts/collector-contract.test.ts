import { type Hex, keccak256, type PrivateKeyAccount, parseEventLogs, parseSignature, toHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import {
  collectorAbi,
  collectorCode,
  encodeCollect,
  type PermitTransfer,
  permitTransferTypedData,
} from "../../../chains/evm/collector-contract.ts";
import { newKey } from "../../../local/networks-document.ts";
import { startChain } from "../../support/evm-chain.ts";
import { deployCollector, deployTestContract, testContract } from "../../support/test-contracts.ts";

const chain = await startChain();
const { client } = chain;
const chainId = await client.getChainId();
const treasury = newKey().address.toLowerCase() as Hex;
const permit2 = await deployTestContract(client, "Permit2", "Permit2");
const collector = await deployCollector(client, { permit2, treasury });
const endless = 2n ** 256n - 1n;
const LATE = 4_102_444_800;

let count = 0;
const nonceOf = (what: string) => keccak256(toHex(`${what} ${count++}`));

/** Deploys a token with a payer who holds 1,000 units and, if `approve` is true, has approved Permit2. */
async function setUp(name = "PermitToken", approve = true) {
  const token = await deployTestContract(client, "Tokens", name);
  const { abi } = testContract("Tokens", name);
  const payer = privateKeyToAccount(newKey().privateKey);
  await client.setBalance({ address: payer.address, value: 10n ** 18n });
  await write(token, name, "mint", [payer.address, 1_000n]);
  if (approve) {
    const hash = await client.writeContract({
      account: payer,
      address: token,
      abi,
      functionName: "approve",
      args: [permit2, endless],
    });
    await client.waitForTransactionReceipt({ hash });
  }
  const balance = (of: Hex) =>
    client.readContract({ address: token, abi, functionName: "balanceOf", args: [of] }) as Promise<bigint>;
  return { token, abi, payer, balance };
}

async function write(address: Hex, name: string, functionName: string, args: unknown[]) {
  const hash = await client.writeContract({ address, abi: testContract("Tokens", name).abi, functionName, args });
  return client.waitForTransactionReceipt({ hash });
}

function sign(payer: PrivateKeyAccount, permit: PermitTransfer, spender = collector): Promise<Hex> {
  return payer.signTypedData(permitTransferTypedData({ chainId, permit2, collector: spender }, permit));
}

/** Sends call data from an unrelated account and returns the receipt. Throws if the call would revert. */
async function send(data: Hex, to = collector) {
  await client.call({ to, data });
  const hash = await client.sendTransaction({ to, data, gas: 1_000_000n });
  return client.waitForTransactionReceipt({ hash });
}

const permitFor = (token: Hex, amount = 100n): PermitTransfer => ({
  token,
  amount,
  nonce: nonceOf("payment"),
  deadline: LATE,
});

test("the deployed code equals the compiled code with this treasury and this Permit2", async () => {
  expect(await client.getCode({ address: collector })).toBe(collectorCode({ permit2, treasury }));
});

test("any account may submit a signed payment, and the treasury receives exactly its amount", async () => {
  const { token, payer, balance } = await setUp();
  const permit = permitFor(token);
  const receipt = await send(encodeCollect(payer.address, permit, await sign(payer, permit)));
  expect(await balance(treasury)).toBe(100n);
  const [event] = parseEventLogs({ abi: collectorAbi, logs: receipt.logs, eventName: "Collected" });
  expect(event?.args).toMatchObject({ payer: payer.address, nonce: BigInt(permit.nonce), amount: 100n });
});

test("a payment that is submitted twice is collected once", async () => {
  const { token, payer, balance } = await setUp();
  const permit = permitFor(token);
  const data = encodeCollect(payer.address, permit, await sign(payer, permit));
  await send(data);
  await expect(send(data)).rejects.toThrow();
  expect(await balance(treasury)).toBe(100n);
});

test("a signature for one payment is refused for another payment, amount, token, deadline or payer", async () => {
  const { token, payer, balance } = await setUp();
  const other = await setUp();
  const permit = permitFor(token);
  const signature = await sign(payer, permit);
  for (const [from, changed] of [
    [payer.address, { ...permit, nonce: nonceOf("another payment") }],
    [payer.address, { ...permit, amount: 99n }],
    [payer.address, { ...permit, amount: 101n }],
    [payer.address, { ...permit, token: other.token }],
    [payer.address, { ...permit, deadline: LATE - 1 }],
    [other.payer.address, permit],
  ] as const)
    await expect(send(encodeCollect(from, changed, signature))).rejects.toThrow();
  expect(await balance(payer.address)).toBe(1_000n);
  expect(await other.balance(other.payer.address)).toBe(1_000n);
});

test("a signature for our Collector is refused for another spender, who could name another receiver", async () => {
  const { token, payer, balance } = await setUp();
  const thief = newKey().address.toLowerCase() as Hex;
  const theirs = await deployCollector(client, { permit2, treasury: thief });
  const permit = permitFor(token);
  const signature = await sign(payer, permit);
  await expect(send(encodeCollect(payer.address, permit, signature), theirs)).rejects.toThrow();
  const { abi } = testContract("Permit2", "Permit2");
  const { amount, nonce, deadline } = permit;
  const straight = client.writeContract({
    address: permit2,
    abi,
    functionName: "permitTransferFrom",
    args: [
      { permitted: { token, amount }, nonce: BigInt(nonce), deadline: BigInt(deadline) },
      { to: thief, requestedAmount: amount },
      payer.address,
      signature,
    ],
  });
  await expect(straight).rejects.toThrow();
  expect(await balance(thief)).toBe(0n);
});

test("an expired signature collects nothing", async () => {
  const { token, payer } = await setUp();
  const permit = { ...permitFor(token), deadline: 1 };
  await expect(send(encodeCollect(payer.address, permit, await sign(payer, permit)))).rejects.toThrow();
});

test("a token that keeps a fee is refused, because the treasury would receive less than the signed amount", async () => {
  const { token, payer, balance } = await setUp("FeeToken");
  const permit = permitFor(token);
  await expect(send(encodeCollect(payer.address, permit, await sign(payer, permit)))).rejects.toThrow();
  expect(await balance(payer.address)).toBe(1_000n);
});

test("a token that re-enters the Collector cannot collect a payment twice", async () => {
  const { token, payer, balance } = await setUp("ReenteringToken");
  const [outer, inner] = [permitFor(token), permitFor(token)];
  const call = async (permit: PermitTransfer) => encodeCollect(payer.address, permit, await sign(payer, permit));
  // The inner call repeats the payment: Permit2 has already used its nonce.
  await write(token, "ReenteringToken", "arm", [collector, await call(outer)]);
  await send(await call(outer));
  expect(await balance(treasury)).toBe(100n);
  // The inner call makes another payment: the outer call sees both amounts arrive and reverts both.
  await write(token, "ReenteringToken", "arm", [collector, await call(inner)]);
  await expect(send(await call(permitFor(token)))).rejects.toThrow();
  expect(await balance(treasury)).toBe(100n);
});

test("a token that returns nothing, and requires an allowance of zero before a new one, is collected", async () => {
  const { token, payer, balance } = await setUp("ZeroFirstToken");
  const permit = permitFor(token);
  await send(encodeCollect(payer.address, permit, await sign(payer, permit)));
  expect(await balance(treasury)).toBe(100n);
});

test("a payer without gas signs a permit too, and a permit that was submitted before does not fail the payment", async () => {
  const { token, abi, payer, balance } = await setUp("PermitToken", false);
  const permission = await payer.signTypedData({
    domain: { name: "Permit Token", version: "1", chainId, verifyingContract: token },
    types: {
      Permit: [
        { name: "owner", type: "address" },
        { name: "spender", type: "address" },
        { name: "value", type: "uint256" },
        { name: "nonce", type: "uint256" },
        { name: "deadline", type: "uint256" },
      ],
    },
    primaryType: "Permit",
    message: { owner: payer.address, spender: permit2, value: endless, nonce: 0n, deadline: BigInt(LATE) },
  });
  const { r, s, v } = parseSignature(permission);
  const collect = async (permit: PermitTransfer) =>
    client.writeContract({
      address: collector,
      abi: collectorAbi,
      functionName: "collectWithPermit",
      args: [
        token,
        payer.address,
        permit.amount,
        BigInt(permit.nonce),
        BigInt(permit.deadline),
        await sign(payer, permit),
        endless,
        BigInt(LATE),
        Number(v),
        r,
        s,
      ],
    });
  await client.waitForTransactionReceipt({ hash: await collect(permitFor(token)) });
  // The permit's nonce is used now, but its allowance remains.
  await client.waitForTransactionReceipt({ hash: await collect(permitFor(token)) });
  expect(await balance(treasury)).toBe(200n);
  expect(await client.readContract({ address: token, abi, functionName: "nonces", args: [payer.address] })).toBe(1n);
});

test("a Collector that is deployed cannot be deployed again", async () => {
  const secondDeployment = client.sendTransaction({
    to: "0x4e59b44847b379578588920ca78fbf26c0b4956c",
    data: (await import("../../../chains/evm/collector-contract.ts")).encodeCollectorDeployment({ permit2, treasury })
      .data,
  });
  await expect(secondDeployment).rejects.toThrow();
  expect(await client.getCode({ address: collector })).toBe(collectorCode({ permit2, treasury }));
});
