import type {
  AuditHeadRequest,
  AuditHeadResponse,
  DepositClaim,
  DepositResult,
  DestinationsRequest,
  DestinationsResponse,
  ExcessRequest,
  ExcessResult,
  PayoutRequest,
  PayoutResult,
} from "./protocol.ts";
import type {
  MarkerClosingRequest,
  MarkerClosingResult,
  PayoutTransactionRequest,
  PayoutTransactionResult,
} from "./solana/transaction-protocol.ts";

/**
 * Signs payouts with the treasury's keys. Workers reach it in another process, or hold the keys themselves
 * (`SIGNER=embedded`). Expected refusals are results; while the signer does not answer, every result is
 * `signer_unavailable`.
 */
export type TreasurySigner = {
  /** Signs payouts. Returns one result for each, in their order. A repeated request has the same result. */
  signPayouts(payouts: readonly PayoutRequest[]): Promise<PayoutResult[]>;
  /** Verifies deposits of payouts that have more of them than fit into one request. */
  claimDeposits(deposits: readonly DepositClaim[]): Promise<DepositResult[]>;
  /** Reports destinations and signed statements about them. Returns undefined while the signer does not answer. */
  claimDestinations(request: DestinationsRequest): Promise<DestinationsResponse | undefined>;
  /** Reads the newest entry of the signer's audit log. Returns undefined while the signer does not answer, or keeps no log. */
  readAuditHead(request: AuditHeadRequest): Promise<AuditHeadResponse | undefined>;
  /** Signs the transfer of what the treasury holds above an asset's ceiling. The signer decides its amount and receiver. */
  moveExcess(request: ExcessRequest): Promise<ExcessResult>;
  /** Signs a transaction on Solana that makes payouts which `signPayouts` has authorized. */
  signPayoutTransaction(request: PayoutTransactionRequest): Promise<PayoutTransactionResult>;
  /** Signs a transaction on Solana that closes markers of payouts. */
  signMarkerClosing(request: MarkerClosingRequest): Promise<MarkerClosingResult>;
  close(): void;
};
