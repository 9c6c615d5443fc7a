import { randomBytes } from "node:crypto";
import { type Hex, hexToBigInt, toHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { encodeTransfer, hashAuthorization } from "../../../../chains/evm/eip3009.ts";
import type { Rpc } from "../../../../chains/evm/evm-rpc.ts";
import type { EvmChain } from "../../../../chains/evm/open-evm-chain.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { mintUsdc } from "../../../../local/usdc.ts";
import { toAuthorization } from "../../../../transfers/evm/authorization-calls.ts";
import { verifyAnyKind } from "../../../../transfers/evm/verify-authorizations.ts";
import type { EvmSigned } from "../../../../transfers/verification.ts";
import { startChain } from "../../../support/evm-chain.ts";
import { deployFactory, wrapUndeployed } from "../../../support/smart-wallets.ts";
import { makeTransfersFixture, relayByThirdParty } from "../../../support/transfers-fixture.ts";

const chain = await startChain({ lanes: 2 });
const factory = await deployFactory(chain);
const fixture = await makeTransfersFixture(chain, {
  change: { walletFactories: [factory.address], finality: { blocks: 3 } },
});
const { deps, evm } = fixture;
const [token] = evm.tokens.values();
/** The gas limit of a contract wallet's transaction: `walletGas` and what surrounds the transfer. */
const MOST_GAS = 1_060_000n;
const GARBAGE: Hex = `0x${"11".repeat(65)}`;

const newOwner = () => privateKeyToAccount(newKey().privateKey);
const fund = (account: Hex) => mintUsdc(chain.client, chain.contracts.token, [account], 1_000_000n);

/** Returns a payment by an account, and the digest that its key or its wallet's owner signs. */
function makePayment(payer: Hex) {
  const facts = {
    chain: chain.id,
    asset: chain.asset,
    token: token?.token ?? ("0x" as const),
    payer: payer.toLowerCase() as Hex,
    receiver: evm.treasury,
    amount: 1_000_000n,
    valid_before: 4_000_000_000,
    authorization_nonce: toHex(randomBytes(32)),
    kind: "eip3009" as const,
    permit: null,
  };
  return { facts, hash: hashAuthorization(token?.separator ?? "0x", toAuthorization(facts)) };
}

/** Verifies a contract wallet's payment. Returns the result, and the gas limit of each call that names the factory. */
async function verify(signed: EvmSigned, network: Partial<EvmChain["network"]> = {}) {
  const limits: (bigint | undefined)[] = [];
  const rpc = ((request: { method: string; params?: unknown }) => {
    const [call] = (request.params ?? []) as { data?: string; gas?: Hex }[];
    if (request.method === "eth_call" && call?.data?.includes(factory.address.slice(2).toLowerCase()))
      limits.push(call.gas && hexToBigInt(call.gas));
    return evm.rpc(request as never);
  }) as unknown as Rpc;
  const watched = { ...evm, rpc, network: { ...evm.network, ...network } };
  const [found] = await verifyAnyKind(deps, watched, [signed], "wallet");
  return { result: found?.[1], limits };
}

test("each call of a factory has at most the gas of the wallet's transaction", async () => {
  const owner = newOwner();
  const wallet = await factory.addressOf(owner.address);
  await fund(wallet);
  const { facts, hash } = makePayment(wallet);
  const proof = wrapUndeployed(factory, owner.address, await owner.sign({ hash }));
  const { result, limits } = await verify({ ...facts, proof });
  expect(result).toMatchObject({ ok: true, deployed: false });
  expect(limits).toEqual([MOST_GAS, MOST_GAS]);
});

test("a stranger's garbage calls a factory once, in the simulation of the transfer", async () => {
  const account = newOwner().address;
  await fund(account);
  const { result, limits } = await verify({
    ...makePayment(account).facts,
    proof: wrapUndeployed(factory, account, GARBAGE),
  });
  expect(result).toMatchObject({ ok: false, reason: expect.stringContaining("would fail") });
  expect(limits).toEqual([MOST_GAS]);
});

test("a confirm calls no factory for an account without the money", async () => {
  const account = newOwner().address;
  const { result, limits } = await verify({
    ...makePayment(account).facts,
    proof: wrapUndeployed(factory, account, GARBAGE),
  });
  expect(result).toMatchObject({ ok: false, reason: expect.stringContaining("exceeds balance") });
  expect(limits).toEqual([]);
});

test("a confirm calls no factory while contract wallets have burned what they may", async () => {
  const owner = newOwner();
  const wallet = await factory.addressOf(owner.address);
  await fund(wallet);
  const { facts, hash } = makePayment(wallet);
  const proof = wrapUndeployed(factory, owner.address, await owner.sign({ hash }));
  const { result, limits } = await verify({ ...facts, proof }, { walletGasPerHour: 1 });
  expect(result).toMatchObject({ ok: false, reason: expect.stringContaining("contract wallets like this one") });
  expect(limits).toEqual([]);
});

test("a factory's call that does not deploy the payer is refused although another relayer has just moved the money", async () => {
  const buyer = newOwner();
  await fund(buyer.address);
  const { facts, hash } = makePayment(buyer.address);
  await relayByThirdParty(chain, encodeTransfer(toAuthorization(facts), await buyer.sign({ hash })));
  await fixture.watch();
  // Once the movement is final and booked as an exception, it admits no transfer at all.
  expect(await fixture.observations()).toMatchObject([{ booked: false, orphaned: false }]);
  const { result } = await verify({ ...facts, proof: wrapUndeployed(factory, newOwner().address, GARBAGE) });
  expect(result).toMatchObject({ ok: false });
});
