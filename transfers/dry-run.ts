import { type Member, simulateOwn } from "../chains/evm/multicall.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import type { Signer } from "../chains/evm/signers/signer.ts";
import { holdTransfer, type TransferRow } from "../db/transfers.ts";
import { cleanText } from "../ops/clean-text.ts";
import { claimEarlier, type DeclinedBook, decline } from "./decline.ts";
import type { TransferDeps } from "./deps.ts";
import { simulateScreened } from "./screening.ts";

/** A transfer that may go into a batch, with the calls that make it. */
export type RowMember = Member & { row: TransferRow };

/**
 * Simulates a batch and puts what would fail on hold; gives the rest. No gas is spent on what cannot succeed now, and
 * nothing is sent for a payer who is not served.
 */
export async function dropFailing(
  deps: TransferDeps,
  chain: EvmChain,
  { signer, declined }: { signer: Signer; declined: DeclinedBook },
  members: readonly RowMember[],
): Promise<RowMember[]> {
  const good: RowMember[] = [];
  const { outcomes, refused } = await simulate(deps, chain, signer, members);
  for (const [index, member] of members.entries()) {
    const outcome = outcomes[index];
    const { row } = member;
    try {
      if (row.purpose === "payment" && refused.has(row.payer)) {
        // Somebody else may have made it already: then the money is here.
        if (!(await claimEarlier(deps, row))) await decline(deps, row, declined);
      }
      // The chain does not refuse a push that was made before: whatever is on record of it comes first.
      else if (outcome?.ok && (row.kind !== "push" || !(await claimEarlier(deps, row)))) good.push(member);
      else if (!outcome?.ok && !(await claimEarlier(deps, row))) {
        const trouble = outcome?.reason ?? "the simulation gave no answer";
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

async function simulate(deps: TransferDeps, chain: EvmChain, signer: Signer, members: readonly RowMember[]) {
  const [first] = members;
  if (first?.row.kind !== "push") {
    const payers = [...new Set(members.flatMap(({ row }) => (row.purpose === "payment" ? row.payer : [])))];
    return simulateScreened(deps, chain, { from: signer.address, members, payers });
  }
  const [call] = first.calls;
  const from = { from: signer.address, gas: BigInt(first.gas) };
  return { outcomes: call ? [await simulateOwn(chain.rpc, from, call)] : [], refused: new Set<string>() };
}
