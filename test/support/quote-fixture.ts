import type { Hex } from "viem";
import { listDestinations } from "../../payments/merchants/destinations.ts";
import { setAcceptsOtherAssets, setDirectPayment } from "../../payments/payouts/payout-policies.ts";
import type { NetworksOptions } from "./evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "./merchant-fixture.ts";
import { testActor } from "./test-actor.ts";
import { deployTestContract, testContract } from "./test-contracts.ts";
import { startTokenKinds } from "./token-kinds.ts";

/** Milliseconds after which a quote at a price has expired. */
export const PAST_QUOTE_MS = 121_000;

/** Starts a chain with tokens of every kind (here `zeroFirst` has 18 decimals) and a euro price that tests set. */
export async function startQuotes() {
  const kinds = await startTokenKinds();
  const { chain, assets } = kinds;
  const feed = await deployTestContract(chain.client, "Feed", "Feed");
  const { abi } = testContract("Feed", "Feed");
  const prices = [{ base: "iso4217/EUR", quote: "iso4217/USD", chain: chain.id, feed, maxAgeSeconds: 86_400 }];
  const entries = (kinds.change["assets"] as { asset: string }[]).map((entry) =>
    entry.asset === assets.zeroFirst ? { ...entry, decimals: 18 } : entry,
  );
  const change = { ...kinds.change, assets: entries };
  return {
    chain,
    assets,
    change,
    /** Sets the price of one euro in US cents. */
    async setPrice(cents: bigint): Promise<void> {
      const args = [cents * 1_000_000n, BigInt(Math.floor(Date.now() / 1_000))];
      const hash = await chain.client.writeContract({ address: feed as Hex, abi, functionName: "set", args });
      await chain.client.waitForTransactionReceipt({ hash });
    },
    /** Returns a merchant fixture that settles in these assets, on its own database. */
    async makeMerchant(
      settled: readonly string[],
      options: NetworksOptions & Parameters<typeof makeMerchantFixture>[1] = {},
    ) {
      const fixture = await makeMerchantFixture(chain, {
        ...options,
        change: { ...change, ...options.change },
        assets: settled,
      });
      Object.assign(fixture.deps, { networks: { ...fixture.deps.networks, prices } });
      return fixture;
    },
  };
}

/** Creates a payment of ten euros. Returns its id. */
export const createEuroPayment = (
  fixture: MerchantFixture,
  more: Parameters<MerchantFixture["create"]>[1] = {},
): Promise<string> => fixture.create(1n, { amount: { unit: "iso4217/EUR", value: 1_000n }, ...more });

const ownerOf = ({ accountId, merchantId, mode }: MerchantFixture) => ({ accountId, merchantId, mode });

/** Returns the merchant's registered destination for an asset. */
export async function destinationOf(fixture: MerchantFixture, asset: string) {
  const owner = ownerOf(fixture);
  const found = unwrap(await listDestinations(fixture.deps, owner)).find((one) => one.asset === asset);
  if (!found) throw new Error(`${asset} has no destination`);
  return { ...owner, id: found.id };
}

/** Sets whether an asset's destination also accepts payments in other assets. */
export const acceptOtherAssets = async (fixture: MerchantFixture, asset: string, accept: boolean) =>
  unwrap(
    await setAcceptsOtherAssets(fixture.deps, { actor: testActor, ...(await destinationOf(fixture, asset)), accept }),
  );

/** Sets whether buyers pay an asset's destination directly. */
export const setDirect = async (fixture: MerchantFixture, asset: string, direct: boolean) =>
  unwrap(await setDirectPayment(fixture.deps, { actor: testActor, ...(await destinationOf(fixture, asset)), direct }));
