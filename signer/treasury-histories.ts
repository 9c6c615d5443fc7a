import type { Chain } from "../chains/chain.ts";
import { ChainError } from "../chains/errors.ts";
import { getChainDriver } from "../chains/find-chain-driver.ts";
import type { TokenMovement } from "../chains/token-movement.ts";
import type { Deposit } from "./records.ts";
import type { SignerDeps } from "./signer-deps.ts";

type Deps = Pick<SignerDeps, "log" | "metrics">;

/** Endpoints that must show the same history. */
const REQUIRED_ENDPOINTS = 2;

/** A movement of an asset into or out of a treasury. */
export type Flow = { chain: string; asset: string; movement: TokenMovement };

/** What a treasury holds of an asset, minor units. Negative if its history begins too late. */
export type Held = { chain: string; treasury: string; asset: string; amount: bigint };

/** Everything that went into and out of the treasuries, and what each holds at the end. */
export type Histories = { inflows: Flow[]; outflows: Flow[]; held: Held[] };

/** Returns the place of a movement on its chain, as text. */
export const placeOf = ({ chain, txHash, logIndex }: Pick<Deposit, "chain" | "txHash" | "logIndex">) =>
  `${chain} ${txHash}/${logIndex}`;

/**
 * Reads the final histories of treasuries, from two endpoints of each chain that has two: an endpoint that leaves out a payout and
 * as much that came in would show the same sums. Those of one chain end at the same height: otherwise money that went from one
 * to another and on could be in neither. Throws an Error if two endpoints differ, and ChainError when a chain cannot be read, or
 * only from one of its endpoints.
 * @param from the first block to read, by CAIP-2 id; 0 by default
 */
export async function readHistories(
  deps: Deps,
  treasuries: readonly Chain[],
  from: ReadonlyMap<string, number>,
): Promise<Histories> {
  const all: Histories = { inflows: [], outflows: [], held: [] };
  for (const some of Map.groupBy(treasuries, ({ chain }) => chain).values()) {
    const { endpoints, to } = await findEndpoints(deps, some);
    for (const chain of some) {
      const range = { from: from.get(chain.chain) ?? 0, to };
      deps.log.info({ chain: chain.chain, treasury: chain.treasury, ...range }, "reading the treasury's history");
      const [flows = [], second = flows] = await readFromEach(chain, endpoints, range);
      requireSame(chain, flows, second);
      const sums = new Map<string, bigint>();
      for (const flow of flows) {
        const { asset, movement } = flow;
        const isOut = movement.payer === chain.treasury;
        sums.set(asset, (sums.get(asset) ?? 0n) + (isOut ? -movement.amount : movement.amount));
        (isOut ? all.outflows : all.inflows).push(flow);
      }
      for (const [asset, amount] of sums)
        all.held.push({ chain: chain.chain, treasury: chain.treasury, asset, amount });
    }
  }
  return all;
}

/**
 * Returns two endpoints that answer, each as a chain of its own, and the height that both have as final; the only one of a chain
 * that has no other.
 */
async function findEndpoints(
  { log, metrics }: Deps,
  [chain]: readonly Chain[],
): Promise<{ endpoints: Chain[]; to: number }> {
  if (!chain) throw new Error("a chain has no treasury");
  const driver = getChainDriver(chain.chain);
  const urls = new Map(chain.network.rpc.map((rpc) => [rpc.url, rpc]));
  if (urls.size < REQUIRED_ENDPOINTS) {
    log.warn({ chain: chain.chain }, "one endpoint only: nothing notices a payout that it leaves out");
    return { endpoints: [chain], to: await driver.readFinalHeight(chain) };
  }
  const found: { endpoint: Chain; height: number }[] = [];
  for (const rpc of urls.values()) {
    if (found.length === REQUIRED_ENDPOINTS) break;
    const endpoint = driver.open({ ...chain.network, rpc: [rpc] }, metrics);
    try {
      found.push({ endpoint, height: await driver.readFinalHeight(endpoint) });
    } catch (err) {
      log.warn({ chain: chain.chain, err }, "an endpoint does not answer");
    }
  }
  if (found.length < REQUIRED_ENDPOINTS)
    throw new ChainError("rpc_unreachable", { detail: `${chain.chain}, from two endpoints` });
  return { endpoints: found.map(({ endpoint }) => endpoint), to: Math.min(...found.map(({ height }) => height)) };
}

/** Reads the history of a treasury from each endpoint, without transfers from the treasury to itself. */
async function readFromEach(
  { chain, treasury }: Chain,
  endpoints: readonly Chain[],
  range: { from: number; to: number },
): Promise<Flow[][]> {
  const driver = getChainDriver(chain);
  return Promise.all(
    endpoints.map(async (endpoint) => {
      const flows: Flow[] = [];
      const own = driver.withTreasury(endpoint, treasury);
      for await (const movements of driver.readTreasuryHistory(own, range))
        for (const movement of movements) {
          const asset = findAsset(own, movement);
          if (asset !== undefined && movement.payer !== movement.receiver) flows.push({ chain, asset, movement });
        }
      return flows;
    }),
  );
}

/** Throws an Error if two endpoints show other movements of a treasury. */
function requireSame({ treasury }: Chain, some: readonly Flow[], others: readonly Flow[]): void {
  const describe = ({ chain, asset, movement }: Flow) => {
    const { blockId, payer, receiver, amount, authorizationNonce } = movement;
    return [placeOf({ chain, ...movement }), blockId, asset, payer, receiver, amount, authorizationNonce].join(" ");
  };
  const [first, second] = [new Set(some.map(describe)), new Set(others.map(describe))];
  const [differing] = first.symmetricDifference(second);
  if (differing !== undefined)
    throw new Error(
      `two endpoints differ about the history of ${treasury}: ${differing}; find out which one is wrong, replace it in the networks file, and repeat this`,
    );
}

function findAsset(chain: Chain, { token }: TokenMovement): string | undefined {
  return [...chain.tokens.values()].find((one) => one.token === token)?.asset;
}

/**
 * Compares the sums of histories with the balances on chain. An endpoint that leaves out movements of old blocks would
 * otherwise show an empty treasury. Throws an Error for a difference beyond what may stay in a treasury.
 * @param left most that may stay in each treasury, by asset, minor units
 */
export async function compareBalances(
  treasuries: readonly Chain[],
  held: readonly Held[],
  left: ReadonlyMap<string, bigint>,
): Promise<void> {
  for (const chain of treasuries)
    for (const asset of chain.tokens.keys()) {
      const of = { asset, nonce: undefined };
      const { balance } = await getChainDriver(chain.chain).readFinalBalance(chain, of);
      const { treasury } = chain;
      const sum = held.find((one) => one.treasury === treasury && one.asset === asset)?.amount ?? 0n;
      const difference = balance > sum ? balance - sum : sum - balance;
      if (difference > (left.get(asset) ?? 0n))
        throw new Error(
          `${treasury} has ${balance} of ${asset}, and its history sums to ${sum}: repeat this, with an earlier block or another endpoint`,
        );
    }
}
