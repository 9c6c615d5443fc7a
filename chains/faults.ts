import { BaseError } from "viem";
import { cleanText } from "../ops/clean-text.ts";

/**
 * What can go wrong between us and a chain. `transient` says whether the same call may go through later; everything
 * else is a misconfiguration or a bug and wants a person.
 */
export const faults = {
  rpc_unreachable: { transient: true, message: "no RPC endpoint of the chain answered" },
  rpc_answer: { transient: true, message: "an RPC endpoint answered with an error" },
  rpc_behind: { transient: true, message: "the RPC endpoint does not know the block yet" },
  endpoints_disagree: { transient: true, message: "two RPC endpoints say different things about a final block" },
  wrong_chain: { transient: false, message: "an RPC endpoint serves another chain" },
  wrong_contract: { transient: false, message: "a contract on the chain is not what the networks file says" },
  wrong_key: { transient: false, message: "a private key does not belong to the address in the networks file" },
  signer_unavailable: { transient: true, message: "the service that holds a private key did not sign" },
  signer_refused: { transient: false, message: "the service that holds a private key refuses to sign" },
  screening_down: { transient: true, message: "it cannot be said whether an account may be served" },
  unknown_asset: { transient: false, message: "the networks file lacks what unfinished transfers need" },
  unknown_chain: { transient: false, message: "the chain is not in the networks file" },
} as const satisfies Record<string, { transient: boolean; message: string }>;

export type FaultCode = keyof typeof faults;

/** Longest detail of an error, code points: endpoints, contracts and signers of others have a part in it. */
const LONGEST_DETAIL = 500;

/** Thrown at the edge of chains/: carries a code and the one bit that decides about another try. */
export class ChainFault extends Error {
  override readonly name = "ChainFault";
  readonly code: FaultCode;
  readonly transient: boolean;

  constructor(code: FaultCode, options: { cause?: unknown; detail?: string } = {}) {
    const { detail, cause } = options;
    const { message } = faults[code];
    super(detail ? `${message}: ${cleanText(detail, LONGEST_DETAIL)}` : message, { cause });
    this.code = code;
    this.transient = faults[code].transient;
  }
}

/**
 * The judge of everything chains/ throws: a fault by its bit; an error that viem threw by itself is a node's answer or
 * silence, and passes.
 */
export function isTransientChainError(error: unknown): boolean {
  return error instanceof ChainFault ? error.transient : error instanceof BaseError;
}
