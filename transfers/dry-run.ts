import type { Hex } from "viem";
import { type Member, simulateOwn } from "../chains/evm/multicall.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import type { Signer } from "../chains/evm/signers/signer.ts";
import { simulateTransaction } from "../chains/evm/simulate-transaction.ts";
import { readAccountKinds, readCodeHashes } from "../chains/evm/wallets.ts";
import { holdTransfer, markAsWallets, type TransferRow } from "../db/transfers.ts";
import { buildPayload } from "./batch.ts";
import { claimEarlier, type DeclinedBook, decline } from "./decline.ts";
import type { TransferDeps } from "./deps.ts";
import type { Fees } from "./fees.ts";
import { screenAccounts, simulateScreened } from "./screening.ts";

/** A transfer that may go into a batch, with the calls that make it. */
export type RowMember = Member & { row: TransferRow };

/** Who sends a batch, under which fees, and who books what is declined of it. */
type Sending = { signer: Signer; fees: Fees; declined: DeclinedBook };

/**
 * Simulates a batch and puts what would fail on hold; gives the rest. No gas is spent on what cannot succeed now, and
 * nothing is sent for a payer who is not served.
 */
export async function dropFailing(
  deps: TransferDeps,
  chain: EvmChain,
  { declined, ...sending }: Sending,
  batch: readonly RowMember[],
): Promise<RowMember[]> {
  const good: RowMember[] = [];
  const members = await leaveOutWallets(deps, chain, batch);
  const { outcomes, refused } = await simulate(deps, chain, sending, members);
  for (const [index, member] of members.entries()) {
    const outcome = outcomes[index];
    const { row } = member;
    if (row.purpose === "payment" && refused.has(row.payer)) {
      // Somebody else may have made it already: then the money is here.
      if (!(await claimEarlier(deps, row))) await decline(deps, row, declined);
    }
    // The chain does not refuse a push that was made before: whatever is on record of it comes first.
    else if (outcome?.ok && (row.kind !== "push" || !(await claimEarlier(deps, row)))) good.push(member);
    else if (!outcome?.ok && !(await claimEarlier(deps, row))) {
      const trouble = outcome?.reason ?? "the simulation gave no answer";
      deps.log.warn({ transfer: row.id, chain: chain.chain, trouble }, "a transfer would fail now; it is tried again");
      await holdTransfer(deps.db, { id: row.id, trouble, now: deps.now() });
    }
  }
  return good;
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
  const payers = [...new Set(batch.flatMap(({ row }) => (row.purpose === "payment" ? (row.payer as Hex) : [])))];
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
  { signer, fees }: Omit<Sending, "declined">,
  members: readonly RowMember[],
) {
  const [first] = members;
  if (first?.row.smart_wallet) {
    // Exactly what would be sent: a wallet's code must not be able to tell.
    const transaction = { from: signer.address, ...buildPayload(chain.multicall, members), ...fees };
    const refused = await screenAccounts(deps, chain, [first.row.payer]);
    return { outcomes: [await simulateTransaction(chain.rpc, chain.multicall, transaction)], refused };
  }
  if (first?.row.kind !== "push") {
    const payers = [...new Set(members.flatMap(({ row }) => (row.purpose === "payment" ? row.payer : [])))];
    return simulateScreened(deps, chain, { from: signer.address, members, payers });
  }
  const [call] = first.calls;
  const from = { from: signer.address, gas: BigInt(first.gas) };
  return { outcomes: call ? [await simulateOwn(chain.rpc, from, call)] : [], refused: new Set<string>() };
}
