import type { EvmChain } from "../chains/evm/open.ts";
import { type BurnedByPayer, listBurnedByPayer, listWalletsInFlight } from "../db/burned-gas.ts";
import { BASE_GAS } from "./batch.ts";
import type { TransferDeps } from "./deps.ts";

/** A transfer is included so often without moving money: the first time, and two more. Then its payment fails. */
export const MOST_INCLUSIONS = 3;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Why a payer is refused that has cost gas; says no more than a buyer needs. */
export const BARRED = "the account cannot pay here for now: earlier payments from it failed on the chain";
/** Why a contract wallet is refused that has done nothing itself. */
export const WALLETS_EXHAUSTED =
  "contract wallets like this one cannot pay here for the moment; pay from an account with a key of its own, or later";

/** Limits of a chain, in gas. `reserve` is what one transaction of a contract wallet may burn. */
export type GasLimits = { reserve: bigint; perPayer: bigint; perCode: bigint; perHour: bigint };

/**
 * Who may not send now. `barred` payers burned too much within a day. `exhausted`: contract wallets have burned so much
 * within the hour that another transaction could pass the limit, of all of them or of those with these `codes`.
 */
export type GasRules = { barred: ReadonlySet<string>; codes: ReadonlySet<string>; exhausted: boolean };

/** Returns the limits of a chain, from the networks file. */
export function gasLimitsOf({ network }: Pick<EvmChain, "network">): GasLimits {
  return {
    reserve: BigInt(network.walletGas) + BASE_GAS,
    perPayer: BigInt(network.walletGasPerPayer),
    perCode: BigInt(network.walletGasPerCode),
    perHour: BigInt(network.walletGasPerHour),
  };
}

/** Decides who may not send now. A transaction that is in flight counts as if it burned all it may. */
export function decideGasRules(
  limits: GasLimits,
  { burned, inFlight }: { burned: readonly BurnedByPayer[]; inFlight: readonly { codeHash: string | null }[] },
): GasRules {
  const ofPayer = Map.groupBy(burned, ({ payer }) => payer);
  const barred = [...ofPayer].filter(([, rows]) => {
    const transactions = rows.reduce((sum, row) => sum + row.transactions, 0);
    const gas = rows.reduce((sum, row) => sum + row.gas, 0n);
    return transactions >= MOST_INCLUSIONS || gas + limits.reserve > limits.perPayer;
  });
  const spent = new Map<string, bigint>();
  const add = (code: string | null, gas: bigint) => code !== null && spent.set(code, (spent.get(code) ?? 0n) + gas);
  for (const { codeHash, lastHour } of burned) add(codeHash, lastHour);
  for (const { codeHash } of inFlight) add(codeHash ?? "", limits.reserve);
  const inAll = [...spent.values()].reduce((sum, gas) => sum + gas, 0n);
  return {
    barred: new Set(barred.map(([payer]) => payer)),
    codes: new Set([...spent].filter(([, gas]) => gas + limits.reserve > limits.perCode).map(([code]) => code)),
    exhausted: inAll + limits.reserve > limits.perHour,
  };
}

/** Reads what was burned on a chain and decides. What is in flight counts for a lane, and refuses no buyer. */
export async function readGasRules(
  deps: Pick<TransferDeps, "db" | "now">,
  chain: EvmChain,
  { forLane }: { forLane: boolean },
): Promise<GasRules & { busy: ReadonlySet<string> }> {
  const now = deps.now().getTime();
  const [dayAgo, hourAgo] = [new Date(now - DAY_MS), new Date(now - HOUR_MS)];
  const burned = await listBurnedByPayer(deps.db, { chain: chain.chain, dayAgo, hourAgo });
  const inFlight = forLane ? await listWalletsInFlight(deps.db, chain.chain) : [];
  const busy = new Set(inFlight.map(({ payer }) => payer));
  return { ...decideGasRules(gasLimitsOf(chain), { burned, inFlight }), busy };
}
