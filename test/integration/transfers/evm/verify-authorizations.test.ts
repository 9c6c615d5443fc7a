import { randomBytes } from "node:crypto";
import { type Hex, type PrivateKeyAccount, parseAbi, toHex } from "viem";
import { describe, expect, test } from "vitest";
import { hashAuthorization } from "../../../../chains/evm/eip3009.ts";
import { readEvmRow } from "../../../../db/chain-families.ts";
import { operator } from "../../../../local/chain-client.ts";
import { toAuthorization } from "../../../../transfers/evm/authorization-calls.ts";
import type { EvmSigned } from "../../../../transfers/verification.ts";
import { fundBuyer, fundBuyers, startChain } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeTransfersFixture, relayByThirdParty } from "../../../support/transfers-fixture.ts";

const chain = await startChain();
const proxy = await startFaultProxy({ target: chain.url });
const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url] });
const { verifier } = fixture.deps;
const verify = async (one: EvmSigned) => (await verifier.verify([one], "key"))[0];
const [token] = fixture.evm.tokens.values();
const adminAbi = parseAbi(["function blacklist(address)", "function pause()", "function unpause()"]);
const administer = async (functionName: "pause" | "unpause" | "blacklist", args: [] | [Hex] = []) => {
  const call = { address: chain.contracts.token, abi: adminAbi, functionName, args, account: operator };
  await chain.client.waitForTransactionReceipt({ hash: await chain.client.writeContract(call as never) });
};

async function authorize(by: PrivateKeyAccount, more: Partial<EvmSigned> = {}): Promise<EvmSigned> {
  const facts = {
    chain: chain.id,
    asset: chain.asset,
    token: token?.token ?? ("0x" as const),
    payer: by.address.toLowerCase() as Hex,
    receiver: fixture.evm.treasury,
    amount: 1_000_000n,
    valid_before: 4_000_000_000,
    authorization_nonce: toHex(randomBytes(32)),
    kind: "eip3009" as const,
    permit: null,
    ...more,
  };
  const hash = hashAuthorization(token?.separator ?? "0x", toAuthorization(facts));
  return { ...facts, proof: await by.sign({ hash }) };
}

describe("an authorization", () => {
  test("an authorization of an account with enough money passes", async () => {
    expect(await verify(await authorize(await fundBuyer(chain)))).toMatchObject({ ok: true });
  });

  test("an authorization whose v is 0 or 1 passes here and at the token", async () => {
    const signed = await authorize(await fundBuyer(chain));
    const v = Number.parseInt(signed.proof.slice(-2), 16) - 27;
    const proof = `${signed.proof.slice(0, -2)}0${v}` as Hex;
    expect(await verify({ ...signed, proof })).toMatchObject({ ok: true });
  });

  test("an authorization signed by another key is refused as not the account's", async () => {
    const [payer, other] = await fundBuyers(chain, 2);
    const signed = await authorize(other as PrivateKeyAccount, { payer: payer?.address.toLowerCase() as Hex });
    expect(await verify(signed)).toMatchObject({
      ok: false,
      reason: expect.stringContaining("not the account's"),
    });
  });

  test.each<[string, Partial<EvmSigned>]>([
    ["another payment of the same amount", { authorization_nonce: toHex(randomBytes(32)) }],
    ["another amount", { amount: 999_999n }],
    ["another receiver", { receiver: `0x${"bb".repeat(20)}` }],
    ["another deadline", { valid_before: 3_999_999_999 }],
  ])("an authorization signed for %s is refused", async (_what, asked) => {
    const signed = await authorize(await fundBuyer(chain));
    const verificationResult = await verify({ ...signed, ...asked });
    expect(verificationResult).toMatchObject({ ok: false, reason: expect.stringContaining("over this payment") });
  });

  test("an authorization of an account that holds too little is refused with the token's own reason", async () => {
    const verificationResult = await verify(await authorize(await fundBuyer(chain, 999_999n)));
    expect(verificationResult).toMatchObject({ ok: false, reason: expect.stringContaining("exceeds balance") });
  });

  test("an authorization of an account that the issuer has blocked is refused with the token's own reason", async () => {
    const blocked = await fundBuyer(chain);
    await administer("blacklist", [blocked.address]);
    const verificationResult = await verify(await authorize(blocked));
    expect(verificationResult).toMatchObject({ ok: false, reason: expect.stringContaining("blacklisted") });
  });

  test("an expired authorization is refused", async () => {
    const verificationResult = await verify(await authorize(await fundBuyer(chain), { valid_before: 1_000 }));
    expect(verificationResult).toMatchObject({ ok: false, reason: expect.stringContaining("expired") });
  });

  test("an authorization is refused while the token is paused, and passes afterwards", async () => {
    const signed = await authorize(await fundBuyer(chain));
    await administer("pause");
    expect(await verify(signed)).toMatchObject({ ok: false, reason: expect.stringContaining("paused") });
    await administer("unpause");
    expect(await verify(signed)).toMatchObject({ ok: true });
  });

  test("an authorization that a third party has relayed passes once its transfer has been observed", async () => {
    const one = await fixture.sign(await fundBuyer(chain));
    const row = (await fixture.rowsOf([one.id]))[0];
    if (!row) throw new Error("no row");
    await relayByThirdParty(chain, one.call);
    await fixture.watch();
    expect(await verify({ ...readEvmRow(row), proof: one.signature, permit: null })).toMatchObject({ ok: true });
  });
});

describe("many authorizations at once", () => {
  test("each of many authorizations gets its own result, in order: valid ones share a call, and invalid ones are repeated alone", async () => {
    const rich = await fundBuyers(chain, 15);
    const poor = await fundBuyers(chain, 15, 1n);
    const signed = await Promise.all(
      rich.flatMap((buyer, index) => [authorize(buyer), authorize(poor[index] as never)]),
    );
    const before = proxy.calls["eth_call"] ?? 0;
    const verificationResults = await verifier.verify(signed, "key");
    expect(verificationResults.map(({ ok }) => ok)).toEqual(signed.map((_one, index) => index % 2 === 0));
    expect((proxy.calls["eth_call"] ?? 0) - before).toBeLessThanOrEqual(1 + 15);
    const secondRun = proxy.calls["eth_call"] ?? 0;
    expect(
      (
        await verifier.verify(
          signed.filter((_one, index) => index % 2 === 0),
          "key",
        )
      ).every(({ ok }) => ok),
    ).toBe(true);
    expect((proxy.calls["eth_call"] ?? 0) - secondRun).toBe(1);
  });

  test("a payer with code among plain keys changes none of their results, and costs one call more", async () => {
    const [wallet, ...buyers] = await fundBuyers(chain, 4);
    const signed = await Promise.all([wallet, ...buyers].map((buyer) => authorize(buyer as PrivateKeyAccount)));
    await chain.client.setCode({ address: wallet?.address ?? "0x", bytecode: "0xfe" });
    const before = proxy.calls["eth_call"] ?? 0;
    expect(await verifier.verify(signed, "key")).toMatchObject([
      { ok: false, byCode: true },
      ...buyers.map(() => ({ ok: true })),
    ]);
    expect((proxy.calls["eth_call"] ?? 0) - before).toBe(2);
  });

  test("an endpoint that refuses a call with much code gets two smaller ones", async () => {
    const poor = await fundBuyer(chain, 1n);
    const buyers = await fundBuyers(chain, 2);
    const signed = await Promise.all([poor, ...buyers].map((buyer) => authorize(buyer)));
    proxy.fail(({ params: [call] }) => {
      const { to, data = "0x" } = (call ?? {}) as { to?: Hex; data?: Hex };
      return to === undefined && data.length > 2_000 ? { code: -32_000, message: "out of gas" } : undefined;
    });
    const results = await verifier.verify(signed, "key");
    proxy.fail(undefined);
    expect(results).toMatchObject([
      { ok: false, reason: expect.stringContaining("exceeds balance") },
      ...buyers.map(() => ({ ok: true })),
    ]);
  });

  test("authorizations of one payer that can afford one of them pass up to its balance, the first one first", async () => {
    const buyer = await fundBuyer(chain, 1_000_000n);
    const signed = await Promise.all([authorize(buyer), authorize(buyer)]);
    const verificationResults = await verifier.verify(signed, "key");
    expect(verificationResults).toMatchObject([
      { ok: true },
      { ok: false, reason: expect.stringContaining("other payments") },
    ]);
  });
});

test("no authorization is refused while the chain is unavailable", async () => {
  const signed = await authorize(await fundBuyer(chain));
  proxy.refuse(true);
  await expect(verify(signed)).rejects.toMatchObject({ code: "rpc_unreachable", transient: true });
  proxy.refuse(false);
  proxy.fail(({ method }) => (method === "eth_call" ? { code: -32_005, message: "limit exceeded" } : undefined));
  await expect(verify(signed)).rejects.toMatchObject({ transient: true });
  const several = [signed, await authorize(await fundBuyer(chain))];
  await expect(verifier.verify(several, "key")).rejects.toMatchObject({ transient: true });
  proxy.fail(undefined);
  expect(await verify(signed)).toMatchObject({ ok: true });
});
