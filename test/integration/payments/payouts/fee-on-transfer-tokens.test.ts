import { numberToHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { readSystemStatus } from "../../../support/read-system-status.ts";
import { deployTestContract, testContract } from "../../../support/test-contracts.ts";
import {
  approveDisburser,
  mintTestToken,
  startTokenKinds,
  testTokenBalance,
  tokenOf,
} from "../../../support/token-kinds.ts";

const UNIT = 1_000_000n;
const kinds = await startTokenKinds();
const { chain } = kinds;
const { client } = chain;
const treasury = chain.keys.treasury.address;
const asset = `${chain.id}/erc20:${await deployTestContract(client, "Tokens", "FeeSwitchToken")}`;
await approveDisburser(chain, [asset]);
const entry = { asset, symbol: "SWT", name: "Switch", kind: "push", decimals: 6, peg: "iso4217/USD" };
const change = { ...kinds.change, assets: [entry] };

const fixture = await makeMerchantFixture(chain, { change, assets: [asset] });

/** Storage slot of the test token's fee, after the members of PermitToken. */
const FEE_SLOT = "0x5";

const setFee = (points: number) =>
  client.setStorageAt({ address: tokenOf(asset), index: FEE_SLOT, value: numberToHex(points, { size: 32 }) });

/** Creates `count` payments of 1.00. Returns the ids of their due settlements. */
async function accrue(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const buyer = privateKeyToAccount(newKey().privateKey);
    await mintTestToken(chain, asset, buyer.address);
    await client.setBalance({ address: buyer.address, value: 10n ** 18n });
    ids.push((await fixture.settlementOf(await fixture.pay(buyer, 100n))).id);
  }
  return ids;
}

const payouts = async (ids: readonly string[]) =>
  (await fixture.transfers()).filter(({ settlement_id }) => ids.includes(settlement_id ?? ""));

test("payouts of a token that introduces a transfer fee while they are in flight are held, and none is paid twice", async () => {
  await mintTestToken(chain, asset, treasury, 100n * UNIT);
  const ids = await accrue(3);
  expect(await fixture.settle(...ids)).toEqual(["begun", "begun", "begun"]);
  const held = await testTokenBalance(chain, asset, treasury);
  // The transaction is signed and sent while there is no fee, and mined when there is one.
  await client.setAutomine(false);
  await fixture.relay();
  await setFee(100);
  await client.mine({ blocks: 1 });
  await client.setAutomine(true);
  await fixture.watch();
  for (let round = 0; round < 6; round += 1) {
    fixture.clock.advance(61_000);
    await fixture.watch();
    await fixture.relay();
    await fixture.watch();
  }
  expect(await testTokenBalance(chain, asset, treasury)).toBe(held);
  for (const row of await payouts(ids))
    expect(row).toMatchObject({ state: "ready", last_error: "WrongAmount 990000 1000000" });
  expect((await readSystemStatus(fixture.deps)).heldPayouts).toEqual([{ chain: chain.id, count: 3 }]);

  // Once the fee is removed, each payout is paid once.
  await setFee(0);
  fixture.clock.advance(61_000);
  await fixture.relay();
  await fixture.watch();
  expect(await testTokenBalance(chain, asset, fixture.destination)).toBe(3n * UNIT);
  expect(await testTokenBalance(chain, asset, treasury)).toBe(held - 3n * UNIT);
  expect((await readSystemStatus(fixture.deps)).heldPayouts).toEqual([{ chain: chain.id, count: 0 }]);
});

test("a payout whose asset the treasury has not approved is held with the command that approves it", async () => {
  const [id = ""] = await accrue(1);
  const { abi } = testContract("Tokens", "PermitToken");
  const account = privateKeyToAccount(chain.keys.treasury.privateKey);
  await client.setBalance({ address: treasury, value: 10n ** 18n });
  const args = [fixture.evm.disburser, 0n];
  const hash = await client.writeContract({ account, address: tokenOf(asset), abi, functionName: "approve", args });
  await client.waitForTransactionReceipt({ hash });
  await fixture.settle(id);
  await fixture.relay();
  const [row] = await payouts([id]);
  expect(row).toMatchObject({
    state: "ready",
    last_error: `the treasury has not approved its Disburser: npm run admin -- disburser approve ${chain.id} --asset ${asset}`,
  });
  await approveDisburser(chain, [asset]);
  fixture.clock.advance(61_000);
  await fixture.relay();
  await fixture.watch();
  expect((await payouts([id]))[0]?.state).toBe("confirmed");
});
