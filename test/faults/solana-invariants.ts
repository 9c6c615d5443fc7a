import { VersionedTransaction } from "@solana/web3.js";
import type { Check } from "./invariants.ts";
import type { Rows } from "./rows.ts";

type Stored = Rows["transactions"][number];

/** What lanes have paid for was stored before and is called final at what it cost; all else is dead; fees kept to the ceiling. */
export const findBadRelayers: Check = ({ rows, solana, history }) => {
  // What was stored and sent in a time whose commits are lost is on the chain only, and its cost is in no books.
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
  const elsewhere = [...stored.values()].filter(({ hash, state }) => state !== "expired" && !landed.has(hash));
  const dear = [...stored.values()].filter(({ bytes }) => readPriority(bytes) > feeCeiling);
  return [
    ...onChain,
    ...elsewhere.map(({ hash, state }) => `${hash} is ${state} and is not on the chain`),
    ...dear.map(({ hash }) => `${hash} offers more than the ceiling`),
    ...Object.entries(scan.lamports).flatMap(([lane, held]) => {
      const spent = scan.transactions.reduce((sum, one) => sum + (one.lane === lane ? one.spent : 0n), 0n);
      return compareLane(rows, { lane, held, spent });
    }),
  ];
};

/** What a lane has spent, fees and rents, is what the books say; and once its deposits are booked, what it has as well. */
function compareLane(
  { entries }: Rows,
  { lane, held, spent }: { lane: string; held: bigint; spent: bigint },
): string[] {
  const own = entries.filter(({ account }) => account === `lane:${lane}`);
  const sum = (some: typeof own) => some.reduce((total, { amount }) => total + amount, 0n);
  const booked = -sum(own.filter(({ kind }) => kind !== "lane_deposit"));
  const hasDeposits = own.some(({ kind }) => kind === "lane_deposit");
  return [
    ...(booked === spent ? [] : [`lane ${lane} has spent ${spent} lamports and the books say ${booked}`]),
    ...(!hasDeposits || sum(own) === held ? [] : [`lane ${lane} has ${held} lamports and the books say ${sum(own)}`]),
  ];
}

/** A buyer's transaction is signed once and never again; of a payout's, all but the one that pays are dead or failed. */
export const findSecondSignings: Check = ({ rows, solana }) => {
  if (solana === undefined) return [];
  const failed = new Set(solana.scan.transactions.flatMap((one) => (one.failed ? [one.hash] : [])));
  const purposes = new Map(rows.transfers.map(({ nonce, purpose }) => [nonce, purpose]));
  const carried = listStored(rows).flatMap((row) => readMemos(row.bytes).map((memo) => ({ memo, row })));
  return [...Map.groupBy(carried, ({ memo }) => memo)].flatMap(([memo, all]) => {
    const live = all.filter(({ row }) => row.state !== "expired" && !failed.has(row.hash));
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

/** Lamports that it offers above its signatures: units times price. */
function readPriority(bytes: string): bigint {
  const budget = readInstructions(bytes).filter(({ program }) => program === budgetProgram);
  const units = budget.find(({ data }) => data[0] === 2)?.data.readUInt32LE(1) ?? 0;
  const price = budget.find(({ data }) => data[0] === 3)?.data.readBigUInt64LE(1) ?? 0n;
  return (BigInt(units) * price) / 1_000_000n;
}
