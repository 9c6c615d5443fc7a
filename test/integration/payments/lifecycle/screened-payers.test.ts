import type { Hex } from "viem";
import { beforeEach, describe, expect, test } from "vitest";
import { checkEvmChain } from "../../../../chains/evm/check-evm-chain.ts";
import { listOptions } from "../../../../payments/options/list-options.ts";
import { fundBuyer, fundBuyers, startChain, transfersTo } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { deployTestContract, testContract } from "../../../support/test-contracts.ts";

const chain = await startChain();
const oracle = await deployTestContract(chain.client, "Oracle", "Oracle");
const { abi } = testContract("Oracle", "Oracle");
const callOracle = async (functionName: "name_" | "silence", args: unknown[]) => {
  const hash = await chain.client.writeContract({ address: oracle, abi, functionName, args });
  await chain.client.waitForTransactionReceipt({ hash });
};
const fixture = await makeMerchantFixture(chain, { change: { screening: { oracle } } });

/** Both screening providers. `name` lists an account, `silence` makes the provider fail. */
const providers = {
  "the sanctions oracle": {
    name: (address: Hex) => callOracle("name_", [address, true]),
    silence: (on: boolean) => callOracle("silence", [on]),
  },
  "the operator's list": {
    name: async (address: Hex) => void fixture.screened.add(address.toLowerCase()),
    silence: async (on: boolean) => {
      fixture.brokenList.on = on;
    },
  },
};
const list = (paymentId: string, ...accounts: { address: string }[]) =>
  listOptions(fixture.deps, {
    paymentId,
    mode: "live",
    accounts: accounts.map((account) => fixture.accountOf(account)),
  });

describe.each(Object.entries(providers))("screening by %s", (_name, provider) => {
  beforeEach(() => provider.silence(false));

  test("a listed account gets no options, and other accounts do", async () => {
    const [listed, other] = await fundBuyers(chain, 2);
    if (!listed || !other) throw new Error("no buyers");
    await provider.name(listed.address);
    const paymentId = await fixture.create();
    expect(await list(paymentId, listed)).toMatchObject({ ok: false, code: "sanctioned_user" });
    const both = await list(paymentId, listed, other);
    expect(both.ok && both.value.options.map(({ account }) => account)).toEqual([fixture.accountOf(other)]);
  });

  test("an account listed after its options is refused at its confirm, and the payment stays open to others", async () => {
    const listed = await fundBuyer(chain);
    const paymentId = await fixture.create();
    const attemptId = await fixture.attempt(paymentId, listed);
    await provider.name(listed.address);
    await fixture.verify(attemptId);
    expect(await fixture.verificationResult(attemptId)).toEqual({ refused: expect.stringContaining("not served") });
    expect((await fixture.status(paymentId)).state).toBe("requires_action");
  });

  test("an account listed after its confirm fails its payment, nothing is sent, and other payments of its batch succeed", async () => {
    const [listed, other] = await fundBuyers(chain, 2);
    if (!listed || !other) throw new Error("no buyers");
    const payments = [await fixture.create(), await fixture.create()] as const;
    await fixture.verify(await fixture.attempt(payments[0], listed), await fixture.attempt(payments[1], other));
    await provider.name(listed.address);
    const before = await transfersTo(chain, chain.keys.treasury.address);
    await fixture.relay();
    await fixture.watch();
    expect(await fixture.status(payments[0])).toMatchObject({ state: "failed", failureCode: "declined_user" });
    expect((await fixture.status(payments[1])).state).toBe("succeeded");
    expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(before.length + 1);
  });

  test("no payment passes or is refused while the provider is down, and all continue afterwards", async () => {
    const buyer = await fundBuyer(chain);
    const [first, second] = [await fixture.create(), await fixture.create()];
    const ready = await fixture.attempt(first, buyer);
    await fixture.verify(ready);
    const waiting = await fixture.attempt(second, await fundBuyer(chain));
    await provider.silence(true);
    await expect(fixture.verify(waiting)).rejects.toMatchObject({ code: "screening_down", transient: true });
    expect(await fixture.verificationResult(waiting)).toBe("waiting");
    await expect(fixture.relay()).rejects.toMatchObject({ code: "screening_down" });
    expect((await fixture.status(first)).state).toBe("processing");
    await provider.silence(false);
    await fixture.verify(waiting);
    await fixture.relay();
    await fixture.watch();
    for (const paymentId of [first, second]) expect((await fixture.status(paymentId)).state).toBe("succeeded");
  });
});

test("a misconfigured oracle address stops the process", async () => {
  // Without a destination, because a destination would be screened.
  const change = { screening: { oracle: `0x${"0e".repeat(20)}` } };
  const broken = await makeMerchantFixture(chain, { settles: false, change });
  await expect(checkEvmChain(broken.evm)).rejects.toMatchObject({
    code: "wrong_contract",
    message: expect.stringContaining("oracle"),
  });
});
