import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { type BurnedByPayer, listBurnedByPayer, listWalletsInFlight } from "../../db/queries/burned-gas.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { BASE_GAS } from "./multicall-batch.ts";

/** Inclusions of a transfer that move no money before its payment fails: the first one and two retries. */
export const MAX_INCLUSIONS = 3;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Reason for rejecting a contract wallet because other wallets have burned gas. Buyers see it. */
export const WALLETS_EXHAUSTED =
  "contract wallets like this one cannot pay here for the moment; pay from an account with a key of its own, or later";

/** Limits of a chain, in gas. `reserve` is the gas limit of one transaction of a contract wallet. */
export type GasLimits = { reserve: bigint; perPayer: bigint; perCode: bigint; perHour: bigint };

/**
 * The payers that may not send now. `barred` payers burned too much gas within a day. `exhausted` is true when all contract
 * wallets together burned so much within an hour that another transaction could exceed the limit; `codes` has the code
 * hashes for which the same is true.
 */
export type GasRules = { barred: ReadonlySet<string>; codes: ReadonlySet<string>; exhausted: boolean };

/** Returns the limits of a chain, from the networks file. */
function gasLimitsOf({ network }: Pick<EvmChain, "network">): GasLimits {
  return {
    reserve: BigInt(network.walletGas) + BASE_GAS,
    perPayer: BigInt(network.walletGasPerPayer),
    perCode: BigInt(network.walletGasPerCode),
    perHour: BigInt(network.walletGasPerHour),
  };
}

/** Decides which payers may not send now. A transaction in flight counts as if it burned its whole gas limit. */
export function decideGasRules(
  limits: GasLimits,
  { burned, inFlight }: { burned: readonly BurnedByPayer[]; inFlight: readonly Pick<BurnedByPayer, "code_hash">[] },
): GasRules {
  const ofPayer = Map.groupBy(burned, ({ payer }) => payer);
  const barred = [...ofPayer].filter(([, rows]) => {
    const transactions = rows.reduce((sum, row) => sum + row.transactions, 0);
    const gas = rows.reduce((sum, row) => sum + row.gas, 0n);
    return transactions >= MAX_INCLUSIONS || gas + limits.reserve > limits.perPayer;
  });
  const spent = new Map<string, bigint>();
  const add = (code: string | null, gas: bigint) => code !== null && spent.set(code, (spent.get(code) ?? 0n) + gas);
  for (const { code_hash, last_hour } of burned) add(code_hash, last_hour);
  for (const { code_hash } of inFlight) add(code_hash ?? "", limits.reserve);
  const inAll = [...spent.values()].reduce((sum, gas) => sum + gas, 0n);
  return {
    barred: new Set(barred.map(([payer]) => payer)),
    codes: new Set([...spent].filter(([, gas]) => gas + limits.reserve > limits.perCode).map(([code]) => code)),
    exhausted: inAll + limits.reserve > limits.perHour,
  };
}

/** Returns since when burned gas counts for the limits of a day. */
export function dayBefore(now: Date): Date {
  return new Date(now.getTime() - DAY_MS);
}

/** Returns since when burned gas counts for the limits of an hour. */
export function hourBefore(now: Date): Date {
  return new Date(now.getTime() - HOUR_MS);
}

/**
 * Returns true when shared transactions have burned so much within an hour that payments no longer share any: which of the
 * members burned the gas cannot be told, and alone it burns only its own.
 */
export function mustSendAlone(chain: Pick<EvmChain, "network">, sharedBurned: bigint): boolean {
  return sharedBurned > gasLimitsOf(chain).perHour;
}

/** Reads the gas burned on a chain and decides. Transactions in flight count for a lane's choice, and reject no buyer. */
export async function readGasRules(
  deps: Pick<TransferDeps, "db" | "now">,
  chain: EvmChain,
  { forLane }: { forLane: boolean },
): Promise<GasRules & { busy: ReadonlySet<string> }> {
  const now = deps.now();
  const window = { chain: chain.chain, dayAgo: dayBefore(now), hourAgo: hourBefore(now) };
  const burned = await listBurnedByPayer(deps.db, window);
  const inFlight = forLane ? await listWalletsInFlight(deps.db, chain.chain) : [];
  const busy = new Set(inFlight.map(({ payer }) => payer));
  return { ...decideGasRules(gasLimitsOf(chain), { burned, inFlight }), busy };
}
