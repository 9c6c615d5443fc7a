import type { Hex } from "viem";
import { listDestinations } from "../../payments/destinations.ts";
import { payDirectly, takeOthers } from "../../payments/payout-policies.ts";
import type { NetworksOptions } from "./chain.ts";
import { deployTestContract, testContract } from "./collector.ts";
import { startKinds } from "./kinds.ts";
import { good, makeTill, type Till } from "./till.ts";

/** Milliseconds after which a quote at a price has expired. */
export const PAST_QUOTE_MS = 121_000;

/** Starts a chain with tokens of every kind (here `zeroFirst` has 18 decimals) and a euro price that tests set. */
export async function startQuotes() {
  const kinds = await startKinds();
  const { chain, assets } = kinds;
  const feed = await deployTestContract(chain.client, "Feed", "Feed");
  const { abi } = testContract("Feed", "Feed");
  const prices = [{ base: "iso4217/EUR", quote: "iso4217/USD", chain: chain.id, feed, maxAgeSeconds: 86_400 }];
  const entries = (kinds.change.assets as { asset: string }[]).map((entry) =>
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
    async makeMerchant(settled: readonly string[], options: NetworksOptions & Parameters<typeof makeTill>[1] = {}) {
      const fixture = await makeTill(chain, { ...options, change: { ...change, ...options.change }, assets: settled });
      Object.assign(fixture.deps, { networks: { ...fixture.deps.networks, prices } });
      return fixture;
    },
  };
}

/** Creates a payment of ten euros. Returns its id. */
export const askEuros = (fixture: Till, more: Parameters<Till["create"]>[1] = {}): Promise<string> =>
  fixture.create(1n, { amount: { unit: "iso4217/EUR", value: 1_000n }, ...more });

const ownerOf = ({ accountId, merchantId, mode }: Till) => ({ accountId, merchantId, mode });

/** Returns the merchant's registered destination for an asset. */
export async function destinationOf(fixture: Till, asset: string) {
  const owner = ownerOf(fixture);
  const found = good(await listDestinations(fixture.deps, owner)).find((one) => one.asset === asset);
  if (!found) throw new Error(`${asset} has no destination`);
  return { ...owner, id: found.id };
}

/** Sets whether an asset's destination also takes payments in other assets. */
export const setTakesOthers = async (fixture: Till, asset: string, take: boolean) =>
  good(await takeOthers(fixture.deps, { ...(await destinationOf(fixture, asset)), take }));

/** Sets whether buyers pay an asset's destination directly. */
export const setDirect = async (fixture: Till, asset: string, direct: boolean) =>
  good(await payDirectly(fixture.deps, { ...(await destinationOf(fixture, asset)), direct }));
