import { concat, type Hex, keccak256, pad, stringToHex, toHex } from "viem";
import { expect, test } from "vitest";
import { fundBuyers } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { deployTestContract, testContract } from "../../../support/test-contracts.ts";
import { mintTestToken, startTokenKinds, tokenOf } from "../../../support/token-kinds.ts";

const kinds = await startTokenKinds();
const { chain, assets } = kinds;
const fixture = await makeMerchantFixture(chain, { change: kinds.change, assets: [assets.usdc, assets.permit] });

/** Storage slot of the test token's allowances, after its name, symbol and balances. */
const ALLOWANCES_SLOT = pad("0x3");
const slotOf = (key: Hex, slot: Hex) => keccak256(concat([pad(key), slot]));

/**
 * Deploys a wallet that pays through Permit2 and accepts every signature until `refuseWith` makes it revert with given
 * bytes.
 */
async function makeRefusingPayer() {
  const address = await deployTestContract(chain.client, "RefusingWallet", "RefusingWallet");
  await mintTestToken(chain, assets.permit, address);
  const index = slotOf(kinds.permit2, slotOf(address, ALLOWANCES_SLOT));
  await chain.client.setStorageAt({ address: tokenOf(assets.permit), index, value: `0x${"ff".repeat(32)}` });
  const { abi } = testContract("RefusingWallet", "RefusingWallet");
  const refuseWith = async (words: Hex) => {
    const hash = await chain.client.writeContract({ address, abi, functionName: "refuseWith", args: [words] });
    await chain.client.waitForTransactionReceipt({ hash });
  };
  return { address, refuseWith };
}

test.each<[string, Hex, string]>([
  ["a zero byte", "0x00", "\ufffd"],
  ["invalid UTF-8", "0xc328ff", "\ufffd(\ufffd"],
  ["a surrogate pair at the place where the text is cut", stringToHex(`${"a".repeat(199)}😀b`), `${"a".repeat(199)}…`],
  ["ten thousand control characters", toHex(new Uint8Array(10_000).fill(7)), `${"\ufffd".repeat(199)}…`],
])(
  "a Permit2 transfer whose wallet later reverts with %s is held, and all other transfers are paid",
  async (_name, words, shown) => {
    const payer = await makeRefusingPayer();
    const hostile = await fixture.create();
    const [option] = await fixture.offer(hostile, payer);
    if (!option) throw new Error("there is no way to pay");
    const results = [{ type: "walletRpc" as const, data: [`0x${"11".repeat(65)}`] }];
    const { attemptId } = unwrap(await fixture.confirm(hostile, option.id, results));
    await fixture.verify(attemptId ?? "");
    expect(await fixture.verificationResult(attemptId ?? "")).toBe("verified");
    await payer.refuseWith(words);

    const owed = await fixture.pay((await fundBuyers(chain, 1))[0] as never);
    await fixture.settle((await fixture.settlementOf(owed)).id);
    const honest: string[] = [];
    for (const buyer of await fundBuyers(chain, 5)) {
      const paymentId = await fixture.create();
      await fixture.verify(await fixture.attempt(paymentId, buyer));
      honest.push(paymentId);
    }
    await fixture.relay();
    await fixture.watch();
    for (const paymentId of honest) expect((await fixture.status(paymentId)).state).toBe("succeeded");
    expect((await fixture.settlementOf(owed)).state).toBe("paid");
    const held = (await fixture.transfers()).find(({ payment_id }) => payment_id === hostile);
    expect(held).toMatchObject({ state: "ready", last_error: shown });
    expect(held?.hold_until).not.toBeNull();
  },
);
