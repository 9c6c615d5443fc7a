import { VersionedTransaction } from "@solana/web3.js";
import type { Rows } from "./database-rows.ts";
import type { Check } from "./payment-invariants.ts";

type Stored = Rows["transactions"][number];

/**
 * Checks that each landed transaction was stored and is final with its cost, that all others expired or were replaced by one that landed,
 * and that fees respect the ceiling.
 */
export const findRelayerErrors: Check = ({ rows, solana, history }) => {
  // A transaction from a period of lost commits exists only on the chain, and its cost is not in the ledger.
  if (solana === undefined || history.lost.length > 0) return [];
  const { scan, feeCeiling } = solana;
  const stored = new Map(listStored(rows).map((row) => [row.hash, row]));
  const landed = new Map(scan.transactions.map((one) => [one.hash, one]));
  const onChain = scan.transactions.flatMap(({ hash, fee }) => {
    const row = stored.get(hash);
    if (row === undefined) return [`${hash} is on the chain and was never stored`];
    if (row.state !== "final") return [`${hash} is on the chain and is ${row.state}`];
    return row.fee === fee ? [] : [`${hash} has cost ${fee} and was booked at ${row.fee}`];
  });
  const isFinal = ({ lane, nonce }: Stored) =>
    [...stored.values()].some((one) => one.lane === lane && one.nonce === nonce && one.state === "final");
  const hasEnded = (row: Stored) => row.state === "expired" || (row.state === "replaced" && isFinal(row));
  const missing = [...stored.values()].filter((row) => !hasEnded(row) && !landed.has(row.hash));
  const overCeiling = [...stored.values()].filter(({ bytes }) => readPriority(bytes) > feeCeiling);
  return [
    ...onChain,
    ...missing.map(({ hash, state }) => `${hash} is ${state} and is not on the chain`),
    ...overCeiling.map(({ hash }) => `${hash} offers more than the ceiling`),
    ...Object.entries(scan.lamports).flatMap(([lane, held]) => {
      const spent = scan.transactions.reduce((sum, one) => sum + (one.lane === lane ? one.spent : 0n), 0n);
      return compareLane(rows, { lane, held, spent });
    }),
  ];
};

/** Checks that a lane's fees and rents equal the ledger, and, once its deposits are booked, that its balance does. */
function compareLane(
  { entries }: Rows,
  { lane, held, spent }: { lane: string; held: bigint; spent: bigint },
): string[] {
  const own = entries.filter(({ account }) => account === `lane:${lane}`);
  const sum = (some: typeof own) => some.reduce((total, { amount }) => total + amount, 0n);
  const booked = -sum(own.filter(({ kind }) => kind !== "lane_deposit"));
  const hasDeposits = own.some(({ kind }) => kind === "lane_deposit");
  return [
    ...(booked === spent ? [] : [`lane ${lane} has spent ${spent} lamports on the chain and ${booked} in the ledger`]),
    ...(!hasDeposits || sum(own) === held
      ? []
      : [`lane ${lane} has ${held} lamports on the chain and ${sum(own)} in the ledger`]),
  ];
}

/** Checks that a buyer's transfer is in one transaction, and that at most one transaction of a payout is live. */
export const findRepeatedSignings: Check = ({ rows, solana }) => {
  if (solana === undefined) return [];
  const failed = new Set(solana.scan.transactions.flatMap((one) => (one.failed ? [one.hash] : [])));
  const purposes = new Map(rows.transfers.map(({ nonce, purpose }) => [nonce, purpose]));
  const stored = listStored(rows).flatMap((row) => readMemos(row.bytes).map((memo) => ({ memo, row })));
  return [...Map.groupBy(stored, ({ memo }) => memo)].flatMap(([memo, all]) => {
    const live = all.filter(
      ({ row: { state, hash } }) => !["expired", "replaced"].includes(state) && !failed.has(hash),
    );
    const most = purposes.get(memo) === "payment" ? all.length : live.length;
    return most > 1 ? [`the transfer ${memo} is in ${most} transactions: ${all.map(({ row }) => row.hash)}`] : [];
  });
};

const listStored = ({ transactions }: Rows): Stored[] => transactions.filter(({ family }) => family === "solana");

const memoProgram = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr";
const budgetProgram = "ComputeBudget111111111111111111111111111111";

function readInstructions(bytes: string): { program: string; data: Buffer }[] {
  const { message } = VersionedTransaction.deserialize(Buffer.from(bytes.slice(2), "hex"));
  return message.compiledInstructions.map(({ programIdIndex, data }) => {
    return { program: message.staticAccountKeys[programIdIndex]?.toBase58() ?? "", data: Buffer.from(data) };
  });
}

function readMemos(bytes: string): string[] {
  return readInstructions(bytes).flatMap(({ program, data }) => (program === memoProgram ? [data.toString()] : []));
}

/** Returns the priority fee in lamports: units times price. */
function readPriority(bytes: string): bigint {
  const budget = readInstructions(bytes).filter(({ program }) => program === budgetProgram);
  const units = budget.find(({ data }) => data[0] === 2)?.data.readUInt32LE(1) ?? 0;
  const price = budget.find(({ data }) => data[0] === 3)?.data.readBigUInt64LE(1) ?? 0n;
  return (BigInt(units) * price) / 1_000_000n;
}
