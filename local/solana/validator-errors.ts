import type { FailedTransactionMetadata } from "litesvm/dist/internal.js";

/** A JSON-RPC error with the code and message of a validator. */
export class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** Returns the error for an invalid request. */
export const invalidParams = (message: string): RpcError => new RpcError(-32602, message);

/** The error of a failed transaction, in the JSON of a validator. */
export type TransactionFailure = string | { [name: string]: unknown };

// litesvm returns errors without members as numbers. Their names exist only in its types.
const transactionErrors =
  `AccountInUse AccountLoadedTwice AccountNotFound ProgramAccountNotFound InsufficientFundsForFee InvalidAccountForFee
  AlreadyProcessed BlockhashNotFound CallChainTooDeep MissingSignatureForFee InvalidAccountIndex SignatureFailure
  InvalidProgramForExecution SanitizeFailure ClusterMaintenance AccountBorrowOutstanding WouldExceedMaxBlockCostLimit
  UnsupportedVersion InvalidWritableAccount WouldExceedMaxAccountCostLimit WouldExceedAccountDataBlockLimit
  TooManyAccountLocks AddressLookupTableNotFound InvalidAddressLookupTableOwner InvalidAddressLookupTableData
  InvalidAddressLookupTableIndex InvalidRentPayingAccount WouldExceedMaxVoteCostLimit WouldExceedAccountDataTotalLimit
  MaxLoadedAccountsDataSizeExceeded ResanitizationNeeded InvalidLoadedAccountsDataSizeLimit UnbalancedTransaction
  ProgramCacheHitMaxLimit CommitCancelled`.split(/\s+/);

const instructionErrors =
  `GenericError InvalidArgument InvalidInstructionData InvalidAccountData AccountDataTooSmall InsufficientFunds
  IncorrectProgramId MissingRequiredSignature AccountAlreadyInitialized UninitializedAccount UnbalancedInstruction
  ModifiedProgramId ExternalAccountLamportSpend ExternalAccountDataModified ReadonlyLamportChange ReadonlyDataModified
  DuplicateAccountIndex ExecutableModified RentEpochModified NotEnoughAccountKeys AccountDataSizeChanged
  AccountNotExecutable AccountBorrowFailed AccountBorrowOutstanding DuplicateAccountOutOfSync InvalidError
  ExecutableDataModified ExecutableLamportChange ExecutableAccountNotRentExempt UnsupportedProgramId CallDepth
  MissingAccount ReentrancyNotAllowed MaxSeedLengthExceeded InvalidSeeds InvalidRealloc ComputationalBudgetExceeded
  PrivilegeEscalation ProgramEnvironmentSetupFailure ProgramFailedToComplete ProgramFailedToCompile Immutable
  IncorrectAuthority AccountNotRentExempt InvalidAccountOwner ArithmeticOverflow UnsupportedSysvar IllegalOwner
  MaxAccountsDataAllocationsExceeded MaxAccountsExceeded MaxInstructionTraceLengthExceeded
  BuiltinProgramsMustConsumeComputeUnits BorshIoError`.split(/\s+/);

/** Returns an error of litesvm in the JSON of a validator: `"AccountNotFound"`, `{ InstructionError: [1, { Custom: 1 }] }`. */
export function failureOf(failed: FailedTransactionMetadata): TransactionFailure {
  const error = failed.err();
  if (typeof error === "number") return transactionErrors[error] ?? `TransactionError${error}`;
  if ("accountIndex" in error) {
    // Two errors have this member and differ only in their classes.
    const name = error.constructor.name.slice("TransactionError".length);
    return { [name]: { account_index: error.accountIndex } };
  }
  if (!("err" in error)) return { DuplicateInstruction: error.index };
  const inner = error.err();
  if (typeof inner === "number") return { InstructionError: [error.index, instructionErrors[inner] ?? "GenericError"] };
  return { InstructionError: [error.index, "code" in inner ? { Custom: inner.code } : "BorshIoError"] };
}

const sentences: Record<string, string> = {
  AccountNotFound: "Attempt to debit an account but found no record of a prior credit.",
  AlreadyProcessed: "This transaction has already been processed",
  BlockhashNotFound: "Blockhash not found",
  InsufficientFundsForFee: "Insufficient funds for fee",
  ProgramAccountNotFound: "Attempt to load a program that does not exist",
  SignatureFailure: "Transaction did not pass signature verification",
};

/** Returns the error as the text that follows "Transaction simulation failed: ". */
export function sentenceOf(failure: TransactionFailure): string {
  if (typeof failure === "string") return sentences[failure] ?? failure;
  const { InstructionError: instruction } = failure;
  if (!Array.isArray(instruction)) return JSON.stringify(failure);
  const [index, reason] = instruction;
  const words = typeof reason === "string" ? reason : `custom program error: 0x${Number(reason.Custom).toString(16)}`;
  return `Error processing Instruction ${index}: ${words}`;
}
