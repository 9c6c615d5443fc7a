import { type Hex, type PrivateKeyAccount, parseSignature } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { collectorAbi } from "../../../../chains/evm/collector-contract.ts";
import { newKey } from "../../../../local/networks-document.ts";
import type { OptionView } from "../../../../payments/views.ts";
import { fundBuyer } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, signOption, unwrap, walletActions } from "../../../support/merchant-fixture.ts";
import {
  callTestToken,
  mintTestToken,
  startTokenKinds,
  testTokenBalance,
  tokenOf,
} from "../../../support/token-kinds.ts";

const kinds = await startTokenKinds();
const { chain, assets } = kinds;
const { client } = chain;
const fixture = await makeMerchantFixture(chain, { change: kinds.change, assets: Object.values(assets) });

/** Creates a buyer with a balance of one test token, and with `gas` wei. */
async function makeBuyer(asset: string, gas = 0n): Promise<PrivateKeyAccount> {
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, asset, buyer.address);
  if (gas > 0n) await client.setBalance({ address: buyer.address, value: gas });
  return buyer;
}
const ether = 10n ** 18n;

async function offerOne(paymentId: string, buyer: PrivateKeyAccount) {
  const options = await fixture.offer(paymentId, buyer);
  expect(options).toHaveLength(1);
  const [option] = options;
  if (!option) throw new Error("there is no way to pay");
  return option;
}

/** Verifies, relays, books and pays out a confirmed payment. Returns its status. */
async function finish(paymentId: string, attemptId: string, asset: string) {
  const before = await testTokenBalance(chain, asset, fixture.destination);
  await fixture.verify(attemptId);
  expect(await fixture.verificationResult(attemptId)).toBe("verified");
  await fixture.relay();
  await fixture.watch();
  const status = await fixture.status(paymentId);
  expect(status.state).toBe("succeeded");
  await fixture.settle((await fixture.settlementOf(paymentId)).id);
  await fixture.relay();
  await fixture.watch();
  expect((await fixture.settlementOf(paymentId)).state).toBe("paid");
  expect((await testTokenBalance(chain, asset, fixture.destination)) - before).toBe(1_000_000n);
  return status;
}

const methodsOf = (option: Pick<OptionView, "actions">) => walletActions(option).map(({ method }) => method);
const sign = "eth_signTypedData_v4";
const send = "eth_sendTransaction";

describe("an EIP-2612 token through Permit2", () => {
  test("a buyer pays an EIP-2612 token with two signatures and no gas, and the payout costs the treasury no gas", async () => {
    const buyer = await makeBuyer(assets.permit);
    const paymentId = await fixture.create();
    const option = await offerOne(paymentId, buyer);
    expect(methodsOf(option)).toEqual([sign, sign]);
    await finish(paymentId, await fixture.attempt(paymentId, buyer), assets.permit);
    expect(await client.getTransactionCount({ address: buyer.address })).toBe(0);
    expect(await client.getBalance({ address: chain.keys.treasury.address })).toBe(0n);
    expect(await testTokenBalance(chain, assets.permit, buyer.address)).toBe(999_000_000n);
  });

  test("a buyer whose Permit2 allowance suffices signs once", async () => {
    const buyer = await makeBuyer(assets.permit, ether);
    const args = [kinds.permit2, 2n ** 256n - 1n];
    await callTestToken(chain, { token: tokenOf(assets.permit), functionName: "approve", args, by: buyer });
    const paymentId = await fixture.create();
    expect(methodsOf(await offerOne(paymentId, buyer))).toEqual([sign]);
    await finish(paymentId, await fixture.attempt(paymentId, buyer), assets.permit);
  });

  test("a payment succeeds when a third party submits its permit first", async () => {
    const buyer = await makeBuyer(assets.permit);
    const paymentId = await fixture.create();
    const option = await offerOne(paymentId, buyer);
    const results = await signOption(option, buyer);
    const { r, s, yParity } = parseSignature(results[0]?.data[0] as Hex);
    const { message } = JSON.parse(String(walletActions(option)[0]?.params[1]));
    const args = [buyer.address, kinds.permit2, BigInt(message.value), BigInt(message.deadline), 27 + yParity, r, s];
    await callTestToken(chain, { token: tokenOf(assets.permit), functionName: "permit", args });
    const { attemptId } = unwrap(await fixture.confirm(paymentId, option.id, results));
    await finish(paymentId, attemptId ?? "", assets.permit);
  });

  test("a confirm with its two signatures swapped is refused, and the correct order then pays", async () => {
    const buyer = await makeBuyer(assets.permit);
    const paymentId = await fixture.create();
    const option = await offerOne(paymentId, buyer);
    const results = await signOption(option, buyer);
    const wrong = unwrap(await fixture.confirm(paymentId, option.id, results.toReversed()));
    await fixture.verify(wrong.attemptId ?? "");
    expect(await fixture.verificationResult(wrong.attemptId ?? "")).toEqual({
      refused: expect.stringContaining("over this payment"),
    });
    const right = unwrap(await fixture.confirm(paymentId, option.id, results));
    await finish(paymentId, right.attemptId ?? "", assets.permit);
  });

  test("a confirm with the signatures of another payment of the same amount is refused", async () => {
    const buyer = await makeBuyer(assets.permit);
    const [one, other] = [await fixture.create(), await fixture.create()];
    const signed = await signOption(await offerOne(one, buyer), buyer);
    const { attemptId } = unwrap(await fixture.confirm(other, (await offerOne(other, buyer)).id, signed));
    await fixture.verify(attemptId ?? "");
    expect(await fixture.verificationResult(attemptId ?? "")).toEqual({
      refused: expect.stringContaining("over this payment"),
    });
    expect((await fixture.status(other)).state).toBe("requires_action");
  });

  test("a payment that a third party collects first succeeds with the third party's transaction", async () => {
    const buyer = await makeBuyer(assets.permit, ether);
    const args = [kinds.permit2, 2n ** 256n - 1n];
    await callTestToken(chain, { token: tokenOf(assets.permit), functionName: "approve", args, by: buyer });
    const paymentId = await fixture.create();
    const attemptId = await fixture.attempt(paymentId, buyer);
    await fixture.verify(attemptId);
    const transfer = (await fixture.transfers()).find((row) => row.payment_id === paymentId);
    if (!transfer?.signature) throw new Error("there is no signed transfer");
    const hash = await client.writeContract({
      address: kinds.collector,
      abi: collectorAbi,
      functionName: "collect",
      args: [
        transfer.token as Hex,
        buyer.address,
        transfer.amount,
        BigInt(transfer.authorization_nonce),
        BigInt(transfer.valid_before ?? 0),
        `0x${transfer.signature.toString("hex")}`,
      ],
    });
    await client.waitForTransactionReceipt({ hash });
    await fixture.watch();
    const status = await fixture.status(paymentId);
    expect([status.state, status.info?.txId]).toEqual(["succeeded", hash]);
  });
});

test.each([
  ["a push transaction", assets.push],
  ["an approval transaction", assets.zeroFirst],
])("%s names its chain, so that a wallet on another chain refuses it", async (_what, asset) => {
  const [action] = walletActions(await offerOne(await fixture.create(), await makeBuyer(asset, ether)));
  const chainId = `0x${(await client.getChainId()).toString(16)}`;
  expect(action).toMatchObject({ chain: chain.id, method: send, params: [{ chainId, value: "0x0" }] });
});

describe("a USDT-like token through Permit2", () => {
  test("a buyer approves a USDT-like token by a transaction and pays by a signature", async () => {
    const buyer = await makeBuyer(assets.zeroFirst, ether);
    const paymentId = await fixture.create();
    expect(methodsOf(await offerOne(paymentId, buyer))).toEqual([send, sign]);
    const attemptId = await fixture.attempt(paymentId, buyer);
    await fixture.verify(attemptId);
    expect(await fixture.verificationResult(attemptId)).toBe("verified");
  });

  test("a buyer with a too small allowance resets it to zero before approving", async () => {
    const buyer = await makeBuyer(assets.zeroFirst, ether);
    const args = [kinds.permit2, 1n];
    await callTestToken(chain, { token: tokenOf(assets.zeroFirst), functionName: "approve", args, by: buyer });
    const paymentId = await fixture.create();
    expect(methodsOf(await offerOne(paymentId, buyer))).toEqual([send, send, sign]);
    const attemptId = await fixture.attempt(paymentId, buyer);
    await fixture.verify(attemptId);
    expect(await fixture.verificationResult(attemptId)).toBe("verified");
  });

  test("a USDT-like token is not offered to an account that cannot pay the gas of the approval", async () => {
    expect(await fixture.offer(await fixture.create(), await makeBuyer(assets.zeroFirst))).toEqual([]);
  });

  test.each([
    ["missing", (results: unknown[]) => results.slice(0, 0)],
    ["in the wrong order", (results: unknown[]) => results.toReversed()],
    ["duplicated", (results: unknown[]) => [...results, ...results]],
  ])("a confirm with results %s is refused immediately", async (_what, spoil) => {
    const buyer = await makeBuyer(assets.zeroFirst, ether);
    const paymentId = await fixture.create();
    const option = await offerOne(paymentId, buyer);
    const results = spoil(await signOption(option, buyer, chain)) as never;
    expect(await fixture.confirm(paymentId, option.id, results)).toMatchObject({ ok: false, code: "invalid_params" });
  });
});

test("transfers of different kinds share one transaction", async () => {
  const buyers = [await fundBuyer(chain), await makeBuyer(assets.permit), await fundBuyer(chain)];
  const attempts: string[] = [];
  const payments: string[] = [];
  for (const buyer of buyers) {
    const paymentId = await fixture.create();
    payments.push(paymentId);
    attempts.push(await fixture.attempt(paymentId, buyer));
  }
  await fixture.verify(...attempts);
  await fixture.relay();
  await fixture.watch();
  const statuses = await Promise.all(payments.map(fixture.status));
  expect(statuses.map(({ state }) => state)).toEqual(["succeeded", "succeeded", "succeeded"]);
  expect(new Set(statuses.map(({ info }) => info?.txId)).size).toBe(1);
});
