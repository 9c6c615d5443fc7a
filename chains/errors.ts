import { BaseError } from "viem";
import { cleanText } from "../runtime/clean-text.ts";

/**
 * Errors at the edge of a chain. A transient error may go away when the same call is retried. Any other error is a
 * misconfiguration or a bug that an operator has to fix.
 */
export const chainErrors = {
  rpc_unreachable: { transient: true, message: "no RPC endpoint of the chain answered" },
  rpc_answer: { transient: true, message: "an RPC endpoint returned an error" },
  budget_spent: { transient: true, message: "the calls per minute of the RPC endpoints are spent" },
  logs_refused: { transient: true, message: "an RPC endpoint does not return the logs of a block" },
  state_missing: { transient: true, message: "an RPC endpoint no longer has the state of a block" },
  history_short: {
    transient: true,
    message: "no RPC endpoint lists the history of an account back to where it was last read",
  },
  rpc_behind: { transient: true, message: "the RPC endpoint does not have the block yet" },
  endpoints_disagree: { transient: true, message: "two RPC endpoints disagree" },
  price_unconfirmed: { transient: true, message: "only one RPC endpoint shows a price" },
  wrong_chain: { transient: false, message: "an RPC endpoint serves another chain" },
  wrong_contract: { transient: false, message: "a contract on the chain does not match the networks file" },
  wrong_key: { transient: false, message: "a private key does not belong to the address in the networks file" },
  signer_unavailable: { transient: true, message: "the signing service is unavailable" },
  signer_refused: { transient: false, message: "the signing service refused to sign" },
  screening_down: { transient: true, message: "account screening is unavailable" },
  unknown_asset: { transient: false, message: "the networks file lacks an asset that unfinished transfers need" },
  unknown_chain: { transient: false, message: "the chain is not in the networks file" },
} as const satisfies Record<string, { transient: boolean; message: string }>;

export type ChainErrorCode = keyof typeof chainErrors;

/** Maximum length of an error's detail, in code points. Endpoints, contracts and signing services contribute to it. */
const MAX_DETAIL_LENGTH = 500;

/** The error that chains/ throws. `transient` tells the caller whether a retry may succeed. */
export class ChainError extends Error {
  override readonly name = "ChainError";
  readonly code: ChainErrorCode;
  readonly transient: boolean;
  /** Set if the endpoint or our budget limits the rate of calls: how long it must not be asked, milliseconds. */
  readonly waitMs: number | undefined;

  constructor(code: ChainErrorCode, options: { cause?: unknown; detail?: string; waitMs?: number | undefined } = {}) {
    const { detail, cause, waitMs } = options;
    const { message } = chainErrors[code];
    super(detail ? `${message}: ${cleanText(detail, MAX_DETAIL_LENGTH)}` : message, { cause });
    this.code = code;
    this.transient = chainErrors[code].transient;
    this.waitMs = waitMs;
  }
}

/**
 * Returns true if a retry may succeed after an error that chains/ threw. A viem error is a node's answer or a missing
 * answer, so it counts as transient.
 */
export function isTransientChainError(error: unknown): boolean {
  return error instanceof ChainError ? error.transient : error instanceof BaseError;
}

/** The cause of the ChainError for an answer of another form than it must have. Its own cause says what is wrong. */
class UnreadableAnswer extends Error {}

/**
 * Parses an endpoint's answer. Throws ChainError `rpc_answer` when that throws, because the answer has another form than it must have.
 * @param parse only parses the answer: an error of other code would count as the endpoint's
 */
export function parseAnswer<T>(parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    if (cause instanceof ChainError) throw cause;
    const detail = cause instanceof BaseError ? cause.shortMessage : String(cause);
    throw new ChainError("rpc_answer", { cause: new UnreadableAnswer(detail, { cause }), detail });
  }
}

/** Returns true for the error of an answer that has another form than it must have. */
export function isUnreadable(error: unknown): boolean {
  return error instanceof ChainError && error.cause instanceof UnreadableAnswer;
}
