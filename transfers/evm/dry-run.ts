import type { Hex } from "viem";
import { readAccountKinds, readCodeHashes } from "../../chains/evm/account-code.ts";
import { isApproved } from "../../chains/evm/disburser-approval.ts";
import { toFeeMembers } from "../../chains/evm/fee-members.ts";
import { type BatchMember, type MemberOutcome, retryFailedAlone } from "../../chains/evm/multicall.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import type { Signer } from "../../chains/evm/signers/signer.ts";
import { simulateTransaction } from "../../chains/evm/simulate-transaction.ts";
import { type EvmTransferRow, holdTransfer, markAsWallets, separateTransfers } from "../../db/queries/transfers.ts";
import { keepUnpaidPayouts } from "../adopt-payouts.ts";
import type { SendHandlers } from "../booking-handlers.ts";
import { claimExistingMovement, declineTransfer } from "../decline-transfer.ts";
import { holdUnprocessable } from "../hold-unprocessable.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { buildPayload } from "./multicall-batch.ts";
import { inspectScreened, screenByOracle, simulateScreened } from "./oracle-screening.ts";
import type { Price } from "./price-transaction.ts";

/** A transfer that can go into a batch, with the calls that make it. */
export type RowMember = BatchMember & { row: EvmTransferRow };

/** The lane that sends a batch, its price, and the functions that book what the dry run finds. */
type Sending = { signer: Signer; price: Price; handlers: SendHandlers };

/** A transfer that is not sent: its payer is refused by screening, or it would fail for this reason. */
type Failed = { row: EvmTransferRow; isRefused: boolean; reason: string };

/** Why a transfer that passes alone is not sent with the others of its account. */
const FAILS_BESIDE_ANOTHER = "fails beside another transfer of its account, and is retried later";

/**
 * The transfers of a batch that can be sent, and a function that holds or ends the others. Each of those takes several statements,
 * so it is called after the broadcast, and before the lane claims its next batch. It throws database errors.
 */
type DryRun = { good: readonly RowMember[]; handleFailed: () => Promise<void> };

/**
 * Simulates a batch and finds the transfers that can be sent. No gas is spent on a transfer that cannot succeed now, and nothing
 * is sent for a payer that fails screening. Of an account whose money or allowance does not cover all of its transfers, those are
 * sent that pass together. Each of the others passes alone, and would fail beside them.
 */
export async function dryRunBatch(
  deps: TransferDeps,
  chain: EvmChain,
  { handlers, ...sending }: Sending,
  batch: readonly RowMember[],
): Promise<DryRun> {
  const good: RowMember[] = [];
  const failed: Failed[] = [];
  const separated: string[] = [];
  const payouts = batch.flatMap(({ row }) => (row.purpose === "payment" ? [] : [row]));
  const unmade = new Set(await keepUnpaidPayouts(deps, payouts, handlers.adopted));
  const rest = batch.filter(({ row }) => row.purpose === "payment" || unmade.has(row));
  const { members, outcomes, refused } = await simulate(deps, chain, sending, rest);
  const spending = new Set(members.filter((_member, index) => passesAmongOthers(outcomes[index])).map(accountOf));
  for (const [index, member] of members.entries()) {
    const outcome = outcomes[index];
    const { row } = member;
    const isRefused = row.purpose === "payment" && refused.has(row.payer);
    if (isRefused || !outcome?.ok) {
      const reason = outcome?.ok === false ? outcome.reason : "the simulation returned no result";
      failed.push({ row, isRefused, reason });
    } else if (mayFailTogether(member, outcome) && spending.has(accountOf(member))) separated.push(row.id);
    else {
      good.push(member);
      spending.add(accountOf(member));
    }
  }
  const handleFailed = async () => {
    if (separated.length > 0)
      deps.log.info({ chain: chain.chain, transfers: separated }, "transfers fail beside others of their accounts");
    await separateTransfers(deps.db, { ids: separated, error: FAILS_BESIDE_ANOTHER, now: deps.now() });
    for (const one of failed)
      await holdOrEnd(deps, chain, one, handlers).catch((error: unknown) => holdUnprocessable(deps, one.row, error));
  };
  return { good, handleFailed };
}

function passesAmongOthers(outcome: MemberOutcome | undefined): boolean {
  return outcome?.ok === true && !outcome.among;
}

/**
 * Returns true for a transfer that passes alone, and fails beside others of its account or may do so. When no common call shows that,
 * payouts go together all the same: only the operator's own account could lack money for them.
 */
function mayFailTogether({ row }: RowMember, { among }: MemberOutcome): boolean {
  return among === "failed" || (among === "unknown" && row.purpose === "payment");
}

/** Returns the account and the token that a transfer takes. */
function accountOf({ row }: RowMember): string {
  return `${row.token} ${row.payer}`;
}

/** Holds a transfer that would fail, ends one whose payer is refused, and keeps one that was made in the meantime. */
async function holdOrEnd(
  deps: TransferDeps,
  chain: EvmChain,
  { row, isRefused, reason }: Failed,
  handlers: SendHandlers,
): Promise<void> {
  if (isRefused) {
    // Another relayer may have made the transfer already. Then the money has arrived.
    if (!(await claimExistingMovement(deps, row))) await declineTransfer(deps, row, handlers.declined);
    return;
  }
  if (await wasMade(deps, row, handlers)) return;
  const error = await explain(chain, row, reason);
  deps.log.warn({ transfer: row.id, chain: chain.chain, error }, "transfer would fail now and is held for a retry");
  await holdTransfer(deps.db, { id: row.id, error, now: deps.now() });
}

/** Returns true for a transfer that fails because it was made in the meantime. The transfer is adopted or held. */
async function wasMade(deps: TransferDeps, row: EvmTransferRow, handlers: SendHandlers): Promise<boolean> {
  if (row.purpose === "payment") return claimExistingMovement(deps, row);
  return (await keepUnpaidPayouts(deps, [row], handlers.adopted)).length === 0;
}

/** Returns why a transfer fails. Most tokens do not report a missing approval. */
async function explain(chain: EvmChain, row: EvmTransferRow, reason: string): Promise<string> {
  if (row.kind !== "disburse" || (await isApproved(chain, row.token, row.amount))) return reason;
  return `the treasury has not approved its Disburser: npm run admin -- disburser approve ${row.chain} --asset ${row.asset}`;
}

/** The transfers of a batch that can be sent together, their outcomes in order, and the payers that screening refuses. */
type Simulated = { members: readonly RowMember[]; outcomes: readonly MemberOutcome[]; refused: ReadonlySet<string> };

/**
 * Simulates a batch and screens its payers, without those payers that have become contracts. A key may have delegated to code
 * since it was verified (EIP-7702), and code in a batch can burn the gas of the whole batch. A transfer that is alone in its
 * transaction can burn only its own gas, so its payer's code is not read.
 */
async function simulate(
  deps: TransferDeps,
  chain: EvmChain,
  { signer, price }: Omit<Sending, "handlers">,
  batch: readonly RowMember[],
): Promise<Simulated> {
  const [first] = batch;
  if (first?.row.smart_wallet) {
    // Simulates exactly the transaction that would be sent, so that a wallet's code cannot detect the simulation.
    const { to, data, gas } = buildPayload(chain.multicall, batch);
    const offered = toFeeMembers(chain.network.feeModel, price.fees);
    const transaction = { from: signer.address, to, data, gas: gas + price.extraGas, ...offered };
    const refused = await screenByOracle(deps, chain, [first.row.payer]);
    return { members: batch, outcomes: [await simulateTransaction(chain.rpc, chain.multicall, transaction)], refused };
  }
  const from = signer.address;
  const payers = listPayers(batch);
  if (batch.length < 2 || payers.length === 0)
    return { members: batch, ...(await simulateScreened(deps, chain, { from, members: batch, payers })) };
  const inspected = await inspectScreened(deps, chain, { from, accounts: payers, reads: [], members: batch, payers });
  if (inspected?.found) {
    const { refused, outcomes: together } = inspected.found;
    const at = { multicall: chain.multicall, from };
    return { members: batch, refused, outcomes: await retryFailedAlone(chain.rpc, at, batch, together) };
  }
  const kinds = inspected?.kinds ?? (await readAccountKinds(chain.rpc, payers));
  const code = payers.filter((_payer, index) => kinds[index] !== "key");
  const members = code.length === 0 ? batch : await separateWallets(deps, chain, batch, code);
  return {
    members,
    ...(await simulateScreened(deps, chain, { from, members, payers: listPayers(members) })),
  };
}

function listPayers(batch: readonly RowMember[]): Hex[] {
  return [...new Set(batch.flatMap(({ row }) => (row.purpose === "payment" ? row.payer : [])))];
}

/** Removes the transfers of payers that have code, and assigns them to the lane of contract wallets. */
async function separateWallets(
  deps: TransferDeps,
  chain: EvmChain,
  batch: readonly RowMember[],
  code: readonly Hex[],
): Promise<readonly RowMember[]> {
  const codeHashes = await readCodeHashes(chain.rpc, code);
  const hashes = new Map(code.map((payer, index) => [payer, codeHashes[index] ?? "0x"]));
  const isWallet = ({ row }: RowMember) => row.purpose === "payment" && hashes.has(row.payer);
  const wallets = batch.filter(isWallet).map(({ row }) => ({ id: row.id, codeHash: hashes.get(row.payer) ?? "0x" }));
  await markAsWallets(deps.db, wallets);
  deps.log.info({ chain: chain.chain, transfers: wallets.map(({ id }) => id) }, "payers have become contracts");
  return batch.filter((member) => !isWallet(member));
}
