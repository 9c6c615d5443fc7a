import { isApproved } from "../chains/evm/approval.ts";
import type { Member } from "../chains/evm/multicall.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import type { Signer } from "../chains/evm/signers/signer.ts";
import { simulateTransaction } from "../chains/evm/simulate-transaction.ts";
import { readAccountKinds, readCodeHashes } from "../chains/evm/wallets.ts";
import { holdTransfer, markAsWallets, type TransferRow } from "../db/transfers.ts";
import { cleanText } from "../ops/clean-text.ts";
import { dropMade } from "./adopt.ts";
import { buildPayload } from "./batch.ts";
import type { SendBooks } from "./books.ts";
import { claimEarlier, decline } from "./decline.ts";
import type { TransferDeps } from "./deps.ts";
import type { Fees } from "./fees.ts";
import { screenAccounts, simulateScreened } from "./screening.ts";

/** A transfer that may go into a batch, with the calls that make it. */
export type RowMember = Member & { row: TransferRow };

/** Who sends a batch, under which fees, and who books what is found of it. */
type Sending = { signer: Signer; fees: Fees; books: SendBooks };

/**
 * Simulates a batch and puts what would fail on hold; gives the rest. No gas is spent on what cannot succeed now, and
 * nothing is sent for a payer who is not served.
 */
export async function dropFailing(
  deps: TransferDeps,
  chain: EvmChain,
  { books, ...sending }: Sending,
  batch: readonly RowMember[],
): Promise<RowMember[]> {
  const good: RowMember[] = [];
  const payouts = batch.flatMap(({ row }) => (row.purpose === "payment" ? [] : [row]));
  const unmade = new Set(await dropMade(deps, payouts, books.adopted));
  const rest = batch.filter(({ row }) => row.purpose === "payment" || unmade.has(row));
  const members = await leaveOutWallets(deps, chain, rest);
  const { outcomes, refused } = await simulate(deps, chain, sending, members);
  for (const [index, member] of members.entries()) {
    const outcome = outcomes[index];
    const { row } = member;
    try {
      if (row.purpose === "payment" && refused.has(row.payer)) {
        // Another relayer may have made it already: then the money is here.
        if (!(await claimEarlier(deps, row))) await decline(deps, row, books.declined);
      } else if (outcome?.ok) good.push(member);
      else if (!(await wasMade(deps, row, books))) {
        const trouble = await explain(chain, row, outcome?.reason ?? "the simulation gave no answer");
        deps.log.warn(
          { transfer: row.id, chain: chain.chain, trouble },
          "a transfer would fail now; it is tried again",
        );
        await holdTransfer(deps.db, { id: row.id, trouble, now: deps.now() });
      }
    } catch (error) {
      await holdFailed(deps, row, error);
    }
  }
  return good;
}

/**
 * Holds a transfer that we fail to handle, so that the others of its batch go on and it does not come first again. Throws
 * what the database throws, when nothing can be written.
 */
export async function holdFailed(deps: TransferDeps, { id, chain }: TransferRow, error: unknown): Promise<void> {
  deps.log.error({ transfer: id, chain, err: error }, "a transfer cannot be handled; it is tried again");
  const words = error instanceof Error ? error.message : "unknown error";
  await holdTransfer(deps.db, { id, trouble: cleanText(`it cannot be handled: ${words}`, 200), now: deps.now() });
}

/** True for a transfer that fails because it was made meanwhile; it is adopted, or waits to be. */
async function wasMade(deps: TransferDeps, row: TransferRow, books: SendBooks): Promise<boolean> {
  if (row.purpose === "payment") return claimEarlier(deps, row);
  return (await dropMade(deps, [row], books.adopted)).length === 0;
}

/** Why a transfer fails; tokens seldom say that an approval is missing. */
async function explain(chain: EvmChain, row: TransferRow, reason: string): Promise<string> {
  if (row.kind !== "disburse" || (await isApproved(chain, row.token, row.amount))) return reason;
  return `the treasury has not approved its Disburser: npm run admin -- disburser approve ${row.chain} --asset ${row.asset}`;
}

/**
 * A key may have delegated to code since it was verified (EIP-7702), and code in a batch can burn the gas of all. Such
 * transfers go to the lane of contract wallets. One that has the transaction to itself can burn no other's.
 */
async function leaveOutWallets(
  deps: TransferDeps,
  chain: EvmChain,
  batch: readonly RowMember[],
): Promise<readonly RowMember[]> {
  const payers = [...new Set(batch.flatMap(({ row }) => (row.purpose === "payment" ? row.payer : [])))];
  if (batch.length < 2 || payers.length === 0) return batch;
  const kinds = await readAccountKinds(chain.rpc, payers);
  const code = payers.filter((_payer, index) => kinds[index] !== "key");
  if (code.length === 0) return batch;
  const hashes = new Map((await readCodeHashes(chain.rpc, code)).map((hash, index) => [code[index] as string, hash]));
  const isWallet = ({ row }: RowMember) => row.purpose === "payment" && hashes.has(row.payer);
  const wallets = batch.filter(isWallet).map(({ row }) => ({ id: row.id, codeHash: hashes.get(row.payer) ?? "0x" }));
  await markAsWallets(deps.db, wallets);
  deps.log.info({ chain: chain.chain, transfers: wallets.map(({ id }) => id) }, "payers have become contracts");
  return batch.filter((member) => !isWallet(member));
}

async function simulate(
  deps: TransferDeps,
  chain: EvmChain,
  { signer, fees }: Omit<Sending, "books">,
  members: readonly RowMember[],
) {
  const [first] = members;
  if (first?.row.smart_wallet) {
    // Exactly what would be sent: a wallet's code must not be able to tell.
    const transaction = { from: signer.address, ...buildPayload(chain.multicall, members), ...fees };
    const refused = await screenAccounts(deps, chain, [first.row.payer]);
    return { outcomes: [await simulateTransaction(chain.rpc, chain.multicall, transaction)], refused };
  }
  const payers = [...new Set(members.flatMap(({ row }) => (row.purpose === "payment" ? row.payer : [])))];
  return simulateScreened(deps, chain, { from: signer.address, members, payers });
}
