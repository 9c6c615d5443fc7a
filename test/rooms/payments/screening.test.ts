import type { Hex } from "viem";
import { beforeEach, describe, expect, test } from "vitest";
import { checkEvmChain } from "../../../chains/evm/check.ts";
import { listOptions } from "../../../payments/options.ts";
import { fundBuyer, fundBuyers, startChain, transfersTo } from "../../support/chain.ts";
import { deployTestContract, testContract } from "../../support/collector.ts";
import { makeTill } from "../../support/till.ts";

const chain = await startChain();
const oracle = await deployTestContract(chain.client, "Oracle", "Oracle");
const { abi } = testContract("Oracle", "Oracle");
const callOracle = async (functionName: "name_" | "silence", args: unknown[]) => {
  const hash = await chain.client.writeContract({ address: oracle, abi, functionName, args });
  await chain.client.waitForTransactionReceipt({ hash });
};
const till = await makeTill(chain, { change: { screening: { oracle } } });

/** Both screening providers. `name` lists an account, `silence` makes the provider fail. */
const providers = {
  "the sanctions oracle": {
    name: (address: Hex) => callOracle("name_", [address, true]),
    silence: (on: boolean) => callOracle("silence", [on]),
  },
  "the operator's list": {
    name: async (address: Hex) => void till.screened.add(address.toLowerCase()),
    silence: async (on: boolean) => {
      till.brokenList.on = on;
    },
  },
};
const list = (paymentId: string, ...accounts: { address: string }[]) =>
  listOptions(till.deps, { paymentId, mode: "live", accounts: accounts.map((account) => till.accountOf(account)) });

describe.each(Object.entries(providers))("screening by %s", (_name, provider) => {
  beforeEach(() => provider.silence(false));

  test("a listed account gets no options, and other accounts do", async () => {
    const [listed, other] = await fundBuyers(chain, 2);
    if (!listed || !other) throw new Error("no buyers");
    await provider.name(listed.address);
    const paymentId = await till.create();
    expect(await list(paymentId, listed)).toMatchObject({ ok: false, code: "sanctioned_user" });
    const both = await list(paymentId, listed, other);
    expect(both.ok && both.value.options.map(({ account }) => account)).toEqual([till.accountOf(other)]);
  });

  test("an account listed after its options is refused at its confirm, and the payment stays open to others", async () => {
    const listed = await fundBuyer(chain);
    const paymentId = await till.create();
    const attemptId = await till.attempt(paymentId, listed);
    await provider.name(listed.address);
    await till.verify(attemptId);
    expect(await till.verdict(attemptId)).toEqual({ refused: expect.stringContaining("not served") });
    expect((await till.status(paymentId)).state).toBe("requires_action");
  });

  test("an account listed after its confirm fails its payment, nothing is sent, and other payments of its batch succeed", async () => {
    const [listed, other] = await fundBuyers(chain, 2);
    if (!listed || !other) throw new Error("no buyers");
    const payments = [await till.create(), await till.create()] as const;
    await till.verify(await till.attempt(payments[0], listed), await till.attempt(payments[1], other));
    await provider.name(listed.address);
    const before = await transfersTo(chain, chain.keys.treasury.address);
    await till.relay();
    await till.watch();
    expect(await till.status(payments[0])).toMatchObject({ state: "failed", failureCode: "declined_user" });
    expect((await till.status(payments[1])).state).toBe("succeeded");
    expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(before.length + 1);
  });

  test("no payment passes or is refused while the provider is down, and all continue afterwards", async () => {
    const buyer = await fundBuyer(chain);
    const [first, second] = [await till.create(), await till.create()];
    const ready = await till.attempt(first, buyer);
    await till.verify(ready);
    const waiting = await till.attempt(second, await fundBuyer(chain));
    await provider.silence(true);
    await expect(till.verify(waiting)).rejects.toMatchObject({ code: "screening_down", transient: true });
    expect(await till.verdict(waiting)).toBe("waiting");
    await expect(till.relay()).rejects.toMatchObject({ code: "screening_down" });
    expect((await till.status(first)).state).toBe("processing");
    await provider.silence(false);
    await till.verify(waiting);
    await till.relay();
    await till.watch();
    for (const paymentId of [first, second]) expect((await till.status(paymentId)).state).toBe("succeeded");
  });
});

test("a misconfigured oracle address stops the process", async () => {
  // Without a destination, because a destination would be screened.
  const change = { screening: { oracle: `0x${"0e".repeat(20)}` } };
  const broken = await makeTill(chain, { settles: false, change });
  await expect(checkEvmChain(broken.evm)).rejects.toMatchObject({
    code: "wrong_contract",
    message: expect.stringContaining("oracle"),
  });
});
