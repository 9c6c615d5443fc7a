import type { PrivateKeyAccount } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { fundBuyer, mine, sendUsdc } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { callTestToken, mintTestToken, startTokenKinds, tokenOf } from "../../../support/token-kinds.ts";

const CENT = 10_000n;
const COUNT = 4n;
const RETRY_MS = 61_000;
const kinds = await startTokenKinds();
const { chain, assets } = kinds;
const friend = await fundBuyer(chain, 100n * CENT);

/** An asset, a buyer who can pay `amount` of it, and how the buyer comes to be able to pay another amount. */
type Means = { asset: string; makeBuyer: (amount: bigint) => Promise<PrivateKeyAccount>; set: typeof setMoney };

async function setMoney(buyer: PrivateKeyAccount, from: bigint, to: bigint): Promise<void> {
  if (from > to) await sendUsdc(chain, buyer, friend.address, from - to);
  else await sendUsdc(chain, friend, buyer.address, to - from);
}

async function approve(by: PrivateKeyAccount, amount: bigint): Promise<void> {
  const args = [kinds.permit2, amount];
  await callTestToken(chain, { token: tokenOf(assets.zeroFirst), functionName: "approve", args, by });
}

async function makeApprovingBuyer(amount: bigint): Promise<PrivateKeyAccount> {
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, assets.zeroFirst, buyer.address);
  await chain.client.setBalance({ address: buyer.address, value: 10n ** 18n });
  await approve(buyer, amount);
  return buyer;
}

async function setAllowance(buyer: PrivateKeyAccount, from: bigint, to: bigint): Promise<void> {
  if (from > 0n) await approve(buyer, 0n);
  await approve(buyer, to);
}

test.each<[string, Means]>([
  ["money", { asset: assets.usdc, makeBuyer: (amount) => fundBuyer(chain, amount), set: setMoney }],
  ["allowance", { asset: assets.zeroFirst, makeBuyer: makeApprovingBuyer, set: setAllowance }],
])(
  "of the payments of an account whose %s is left for one, one is sent at a time, and no gas is burned",
  async (_what, means) => {
    const fixture = await makeMerchantFixture(chain, { change: kinds.change, assets: [means.asset] });
    fixture.clock.stop();
    const attempts: string[] = [];
    const payer = await means.makeBuyer(COUNT * CENT);
    for (let count = 0n; count < COUNT; count += 1n)
      attempts.push(await fixture.attempt(await fixture.create(1n), payer));
    attempts.push(await fixture.attempt(await fixture.create(1n), await means.makeBuyer(CENT)));
    await fixture.verify(...attempts);
    const readRows = async () => {
      const rows = await fixture.transfers();
      return rows
        .filter((row) => row.payer === payer.address.toLowerCase())
        .map(({ state, alone }) => ({ state, alone }));
    };
    const waiting = { state: "ready", alone: true };
    const countSent = async () => (await fixture.db.selectFrom("transaction").select("hash").execute()).length;

    await means.set(payer, COUNT * CENT, CENT);
    await chain.client.setAutomine(false);
    await fixture.relay();
    const others = Array.from({ length: 3 }, () => waiting);
    expect(await readRows()).toEqual([{ state: "assigned", alone: false }, ...others]);
    // The others pass alone while the first one is in no block.
    fixture.clock.advance(RETRY_MS);
    await fixture.relay();
    expect(await countSent()).toBe(1);
    await mine(chain);
    await chain.client.setAutomine(true);
    await fixture.watch();
    expect((await fixture.transfers()).map(({ state }) => state).toSorted()).toEqual([
      "confirmed",
      "confirmed",
      "ready",
      "ready",
      "ready",
    ]);

    await means.set(payer, 0n, CENT);
    fixture.clock.advance(RETRY_MS);
    await fixture.relay();
    await fixture.watch();
    expect((await readRows()).map(({ state }) => state).toSorted()).toEqual([
      "confirmed",
      "confirmed",
      "ready",
      "ready",
    ]);
    expect(await countSent()).toBe(2);
    expect(await fixture.db.selectFrom("burned_gas").selectAll().execute()).toEqual([]);
  },
);
