// Generated from the OpenAPI document by `npm run client:types`. Amounts are strings of minor units; times are Unix seconds or
// ISO 8601, as each member states.

/** An amount in minor units of its unit. */
export type RequestedAmount = {
  readonly unit: string;
  readonly value: string;
};

export type CreatePaymentRequest = {
  readonly referenceId?: string | null;
  readonly description?: string | null;
  readonly metadata?: {
    [key: string]: string;
  } | null;
  readonly amount: RequestedAmount;
  readonly expiresAt?: number | null;
  readonly checkout?: {
    readonly successUrl: string;
    readonly errorUrl: string;
  } | null;
};

/** A created payment. */
export type CreatePaymentResponse = {
  readonly id: string;
  /** The same as id. */
  readonly paymentId: string;
  /** The checkout page for the buyer; a wallet opens it as a payment link. */
  readonly gatewayUrl: string;
  readonly status: PaymentStatus;
  /** Unix time in seconds. */
  readonly expiresAt: number;
  readonly isFinal: boolean;
  /** Delay before the next poll, milliseconds; null when the payment is final. */
  readonly pollInMs: number | null;
  /** Members of the request that the payment does not follow, and why. */
  readonly warnings: readonly {
    readonly field: string;
    readonly message: string;
  }[];
};

/**
 * The last four are final.
 */
export type PaymentStatus = "requires_action" | "processing" | "succeeded" | "failed" | "expired" | "cancelled";

/** Every response that is not a success. */
export type ErrorResponse = {
  readonly code: ErrorCode;
  /** For people; names the field if the error concerns one. */
  readonly message: string;
};

/**
 * Tells a client what failed. Reserved, and returned by nothing: partner_not_found, customer_not_found, wallet_not_found, executor_not_found.
 */
export type ErrorCode =
  | "rate_limited"
  | "invalid_params"
  | "params_validation"
  | "payment_not_found"
  | "refund_not_found"
  | "idempotency_conflict"
  | "internal_error"
  | "invalid_api_key"
  | "unauthorized"
  | "forbidden"
  | "invalid_state"
  | "payment_expired"
  | "quote_expired"
  | "missing_api_key"
  | "missing_merchant_api_key"
  | "missing_merchant_id"
  | "header_not_ascii"
  | "not_sandbox_api_key"
  | "merchant_not_found"
  | "api_key_not_found"
  | "app_id_not_found"
  | "webhook_endpoint_not_found"
  | "event_not_found"
  | "missing_app_id"
  | "missing_client_id"
  | "invalid_app_id"
  | "conflicting_auth_headers"
  | "missing_auth_headers"
  | "invalid_api_version"
  | "unknown_api_version"
  | "api_version_downgrade"
  | "sanctioned_user"
  | "payment_not_succeeded"
  | "already_refunded"
  | "settlement_asset_conflict"
  | "merchant_exists"
  | "chain_unavailable"
  | "partner_not_found"
  | "customer_not_found"
  | "wallet_not_found"
  | "executor_not_found";

/** The status of a payment. */
export type GetPaymentStatusResponse = {
  readonly status: PaymentStatus;
  readonly isFinal: boolean;
  /** Delay before the next poll, milliseconds; null when the payment is final. */
  readonly pollInMs: number | null;
  readonly info: PaymentInformation | null;
  /** Set only when the payment failed. */
  readonly failureCode?: "declined_user" | null;
};

/** How a payment was paid. */
export type PaymentInformation = {
  /** Transaction hash; in test mode test: followed by the payment's id. */
  readonly txId: string;
  readonly optionAmount: Amount;
};

/** An amount, in minor units of its unit. */
export type Amount = {
  /** iso4217/ and a currency code, or caip19/ and an asset. */
  readonly unit: string;
  readonly value: string;
  readonly display: AmountDisplay;
};

/** How to display an amount. */
export type AmountDisplay = {
  readonly assetSymbol: string;
  readonly assetName: string;
  readonly decimals: number;
  readonly iconUrl?: string | null;
  readonly networkIconUrl?: string | null;
  readonly networkName?: string | null;
};

/** A payment, as its merchant reads it. */
export type Payment = {
  readonly status: PaymentStatus;
  readonly isFinal: boolean;
  /** Delay before the next poll, milliseconds; null when the payment is final. */
  readonly pollInMs: number | null;
  readonly info: PaymentInformation | null;
  /** Set only when the payment failed. */
  readonly failureCode?: "declined_user" | null;
  readonly id: string;
  /** The same as id. */
  readonly paymentId: string;
  readonly merchantId: string;
  readonly referenceId: string | null;
  readonly description: string | null;
  /**
   * The merchant's own values by their own names: up to 50 keys of 40 characters, with up to 500 characters each.
   * @example {
   *   "order": "6735",
   *   "channel": "web"
   * }
   */
  readonly metadata: {
    [key: string]: string;
  };
  readonly amount: Amount;
  /** ISO 8601 with milliseconds, UTC. */
  readonly createdAt: string;
  /** Unix time in seconds. */
  readonly expiresAt: number;
  /** The checkout page for the buyer, as the creation has returned it. */
  readonly gatewayUrl: string;
  readonly checkout: {
    readonly successUrl: string;
    readonly errorUrl: string;
  } | null;
  /** The payout, once it has arrived. */
  readonly settlement: {
    readonly successful: {
      readonly txId: string;
      readonly amount: Amount;
    };
  } | null;
  /** What its refunds return to the payer, also those that are still pending and not those that were withdrawn, in the unit of info.optionAmount, which it can exceed after a restore of the database; null without a refund. */
  readonly refundedAmount: Amount | null;
};

/** No member is read; the body may also be left out. */
export type CancelPaymentRequest = Record<string, never>;

/** A cancelled payment. */
export type CancelPaymentResponse = {
  readonly paymentId: string;
  readonly status: "cancelled";
  /** ISO 8601 with milliseconds, UTC. */
  readonly cancelledAt: string;
  readonly cancelledReason: "cancelled_by_user" | "cancelled_by_merchant";
};

export type SimulatePaymentRequest = {
  readonly status: "processing" | "succeeded" | "failed" | "expired" | "cancelled";
};

export type CreateRefundRequest = {
  readonly paymentId: string;
  /** The part to refund; left out, all that is left; null is refused. Refused (params_validation) also if it is below the dust amount that the operator has set for the asset, or if the payment has 20 refunds already that were not withdrawn, unless it is all that is left. */
  readonly amount?: RequestedAmount;
};

/** Money of a payment that goes back to its payer. */
export type Refund = {
  readonly refundId: string;
  /** The payment that is refunded. */
  readonly paymentId: string;
  /** The merchant whose balance pays the refund. */
  readonly merchantId: string;
  /** The referenceId of the payment. */
  readonly referenceId: string | null;
  readonly status: RefundStatus;
  /** Why it waits (balance_short: what the merchant is owed does not cover it; inventory_short: the treasury has too little of the asset), is held (screening; receiver_blocked: the token's issuer blocks the receiver) or has failed (withdrawn: nothing was sent); null otherwise. */
  readonly reason: ("balance_short" | "inventory_short" | "screening" | "receiver_blocked" | "withdrawn") | null;
  /** In the asset that the payment was paid in. */
  readonly amount: Amount;
  /** CAIP-10 account that the money goes to: the payer's. Null in test mode if no wallet paid. */
  readonly receiver: string | null;
  /** True when the service sends nothing: in test mode, and of a payment that the buyer paid to the merchant directly, who returns the money. Such a refund succeeds at once. */
  readonly isRecordOnly: boolean;
  /** Hash of the transaction that paid it, once it is final; in test mode test: and its id. */
  readonly txId: string | null;
  /** ISO 8601 with milliseconds, UTC. */
  readonly createdAt: string;
  /** ISO 8601 with milliseconds, UTC. */
  readonly lastUpdatedAt: string;
  readonly succeededAt: string | null;
};

/**
 * pending: waits for the merchant's balance, for the treasury's inventory of the asset, or for its turn. held: screening rejects its receiver, or the token's issuer blocks it; it can only be withdrawn. processing: it is being sent. succeeded and failed are final.
 */
export type RefundStatus = "pending" | "held" | "processing" | "succeeded" | "failed";

export type ListRefundsResponse = {
  readonly data: readonly Refund[];
  /** The cursor of the next page; null on the last page. */
  readonly nextCursor: string | null;
};

/** An empty object; the body may also be left out. */
export type EmptyRequest = Record<string, never>;

export type ListedPayment = {
  readonly paymentId: string;
  readonly merchantId: string;
  readonly merchant: {
    readonly id: string;
    readonly name: string;
    readonly iconUrl?: string;
  };
  readonly referenceId: string | null;
  readonly description: string | null;
  /**
   * The merchant's own values by their own names: up to 50 keys of 40 characters, with up to 500 characters each.
   * @example {
   *   "order": "6735",
   *   "channel": "web"
   * }
   */
  readonly metadata: {
    [key: string]: string;
  };
  readonly status: PaymentStatus;
  readonly isTerminal: boolean;
  /** The requested amount, in its unit. */
  readonly fiatAmount: Amount;
  readonly tokenAmount: Amount | null;
  readonly buyer: {
    readonly accountCaip10: string;
  } | null;
  readonly transaction: {
    readonly networkId: string;
    readonly hash: string | null;
  } | null;
  /** The operator's fees on tokenAmount; percentage in percent. */
  readonly fees: {
    readonly total: Amount;
    readonly fixed: Amount;
    readonly percentage: number;
  } | null;
  readonly settlement: {
    readonly settled: boolean;
    readonly amount: Amount | null;
    readonly txHash: string | null;
  } | null;
  /** ISO 8601 with milliseconds, UTC. */
  readonly createdAt: string;
  /** ISO 8601 with milliseconds, UTC. */
  readonly lastUpdatedAt: string;
  readonly settledAt: string | null;
};

export type ListMerchantPaymentsResponse = {
  readonly data: readonly ListedPayment[];
  /** The cursor of the next page; null on the last page. */
  readonly nextCursor: string | null;
  /** Over every payment that matches the filters, not only this page. */
  readonly stats: {
    /** Sum of the requested amounts of succeeded payments, in whole units. A JSON number, as clients read it: exact to 15 digits. */
    readonly totalRevenue: readonly {
      readonly amount: number;
      readonly currency: string;
    }[];
    readonly totalTransactions: number;
    readonly totalCustomers: number;
  };
};

/** What a merchant is owed in an asset and has not been paid yet. */
export type MerchantBalance = {
  /** @example mrch_4b7d1c0e9f8a4c5db6e7f8091a2b3c4d */
  readonly merchantId: string;
  /**
   * CAIP-19
   * @example eip155:8453/erc20:0x833589fcd6edb6e08f4c7c32d4f71b54bda02913
   */
  readonly asset: string;
  /** @example USDC */
  readonly symbol: string;
  /**
   * How many digits of an amount are decimals; null for an asset of which they are not known.
   * @example 6
   */
  readonly decimals: number | null;
  /**
   * What is owed and whose payout has not begun.
   * @example 12500000
   */
  readonly amount: string;
  /**
   * What is owed and in payouts that have begun and are not final.
   * @example 12500000
   */
  readonly inTransit: string;
};

export type ListBalancesResponse = {
  readonly data: readonly MerchantBalance[];
  /** The cursor of the next page; null on the last page. */
  readonly nextCursor: string | null;
};

/** A change of a merchant's balance in an asset, or the balance itself. */
export type StatementLine = {
  /** @example mrch_4b7d1c0e9f8a4c5db6e7f8091a2b3c4d */
  readonly merchantId: string;
  /**
   * CAIP-19
   * @example eip155:8453/erc20:0x833589fcd6edb6e08f4c7c32d4f71b54bda02913
   */
  readonly asset: string;
  /** @example USDC */
  readonly symbol: string;
  /**
   * How many digits of an amount are decimals; null for an asset of which they are not known.
   * @example 6
   */
  readonly decimals: number | null;
  /** When it was booked; null for a balance. */
  readonly at: string | null;
  /**
   * opening, closing: the balance before and after the period. assigned: money that arrived otherwise.
   */
  readonly kind: "opening" | "payment" | "settlement" | "refund" | "assigned" | "closing";
  readonly paymentId: string | null;
  /** The refund; of refunds only. */
  readonly refundId: string | null;
  readonly referenceId: string | null;
  readonly description: string | null;
  readonly metadata: {
    [key: string]: string;
  } | null;
  /** What the buyer paid in this asset; of payments only. */
  readonly gross: string | null;
  /** The operator's fee, part of gross; of payments only. */
  readonly fee: string | null;
  /** What the buyer paid in another asset than the merchant is owed, in minor units of that asset. gross and fee are null then, and change is what amount without fee was converted to. */
  readonly paid: {
    /**
     * CAIP-19
     * @example eip155:8453/erc20:0x833589fcd6edb6e08f4c7c32d4f71b54bda02913
     */
    readonly asset: string;
    /** @example USDC */
    readonly symbol: string;
    /**
     * How many digits of an amount are decimals; null for an asset of which they are not known.
     * @example 6
     */
    readonly decimals: number | null;
    /**
     * Minor units of the asset.
     * @example 12500000
     */
    readonly amount: string;
    /**
     * The operator's fee, part of amount.
     * @example 12500000
     */
    readonly fee: string;
  } | null;
  /** The change of the balance; negative for settlements and refunds. */
  readonly change: string | null;
  /**
   * Minor units of the asset.
   * @example 12500000
   */
  readonly balance: string;
  /** The receiver of a settlement or refund, CAIP-10 in its chain's own spelling. */
  readonly to: string | null;
  /** Null while a settlement or refund is in transit. */
  readonly txHash: string | null;
};

export type GetStatementResponse = {
  readonly data: readonly StatementLine[];
  /** The cursor of the next page; null on the last page. */
  readonly nextCursor: string | null;
};

export type CreateMerchantRequest = {
  readonly merchantName: string;
  readonly merchantEmail: string;
  readonly iconUrl?: string | null;
};

export type Merchant = {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly status: "active" | "inactive" | "suspended";
  /** ISO 8601 with milliseconds, UTC. */
  readonly createdAt: string;
  /** The logo's URL, as it was given. */
  readonly iconUrl: string | null;
  /** The service's copy of the logo, as buyers see it. */
  readonly servedIconUrl: string | null;
};

export type CreateMerchantResponse = {
  readonly merchant: Merchant;
};

export type ListMerchantsResponse = {
  readonly data: readonly Merchant[];
  /** The same as data. */
  readonly merchants: readonly Merchant[];
  readonly totalCount: number;
  /** The cursor of the next page; null on the last page. */
  readonly nextCursor: string | null;
};

export type Settlements = {
  readonly crypto: readonly CryptoSettlement[];
  readonly fiat: readonly Record<string, never>[];
};

export type CryptoSettlement = {
  readonly id: string;
  /** CAIP-19 */
  readonly asset: string;
  /** CAIP-10, on the asset's chain. The account that is paid now; of a settlement that does not apply yet, the requested one. */
  readonly destination: string;
  /** The change that waits; absent when none does. An addition to the specification. */
  readonly pendingChange?: {
    readonly changeId: string;
    readonly destination: string;
    /** ISO 8601 with milliseconds, UTC. */
    readonly requestedAt: string;
    /** ISO 8601 with milliseconds, UTC. */
    readonly appliesAt: string;
  };
};

export type GetMerchantResponse = {
  readonly merchant: {
    readonly id: string;
    readonly name: string;
    readonly email: string;
    readonly status: "active" | "inactive" | "suspended";
    /** ISO 8601 with milliseconds, UTC. */
    readonly createdAt: string;
    /** The logo's URL, as it was given. */
    readonly iconUrl: string | null;
    /** The service's copy of the logo, as buyers see it. */
    readonly servedIconUrl: string | null;
    readonly settlements: Settlements;
  };
};

export type UpdateMerchantRequest = {
  readonly merchantName?: string;
  readonly merchantEmail?: string;
  readonly iconUrl?: string | null;
};

export type DeleteMerchantResponse = {
  readonly id: string;
  readonly deleted: true;
};

export type CreateCryptoSettlementsRequest = {
  readonly settlements: readonly {
    readonly asset: string;
    readonly destination: string;
  }[];
};

export type CreateCryptoSettlementsResponse = {
  readonly settlements: readonly CryptoSettlement[];
};

export type UpdateCryptoSettlementRequest = {
  readonly destination: string;
};

/** A request to add, change or delete a settlement destination. */
export type SettlementChange = {
  readonly changeId: string;
  readonly settlementId: string;
  readonly asset: string;
  /** Null for an addition. */
  readonly previousDestination: string | null;
  /** Null for a deletion. */
  readonly destination: string | null;
  readonly status: "requested" | "approved" | "applied" | "rejected";
  readonly requestedBy: ChangeActor;
  /** ISO 8601 with milliseconds, UTC. */
  readonly requestedAt: string;
  /** When it applies unless it is approved or rejected before. */
  readonly appliesAt: string;
  readonly decidedBy: ChangeActor | null;
  readonly decidedAt: string | null;
  readonly rejectionReason: ("decided" | "withdrawn" | "replaced") | null;
  readonly appliedAt: string | null;
};

export type ChangeActor = {
  readonly type: "key" | "operator";
  /** The id of the API key; null for an operator of the service. */
  readonly id: string | null;
  /** The address that the request came from. */
  readonly address: string | null;
};

export type ListSettlementChangesResponse = {
  readonly data: readonly SettlementChange[];
  /** The cursor of the next page; null on the last page. */
  readonly nextCursor: string | null;
};

/** A decision that an approval key of the merchant has signed. */
export type SignedStatement = {
  /** The canonical text of the decision, exactly as it was signed; lines end with one line feed each. */
  readonly text: string;
  /** An Ed25519 public key, 32 bytes in lower-case hex. */
  readonly signer: string;
  /** The Ed25519 signature of the text's bytes (UTF-8), base64. */
  readonly signature: string;
};

export type ApproveSettlementChangeRequest = {
  readonly statement: SignedStatement;
};

export type RejectSettlementChangeRequest = {
  readonly statement?: SignedStatement | null;
};

/** A public key by which a merchant approves changes of its destinations. */
export type ApprovalKey = {
  /** Ed25519, 32 bytes in lower-case hex. */
  readonly publicKey: string;
  readonly status: "waiting" | "active" | "revoked";
  /** The name of this service in the statements that the key signs. */
  readonly deployment: string;
  readonly registeredBy: ChangeActor;
  /** ISO 8601 with milliseconds, UTC. */
  readonly registeredAt: string;
  /** When it approves changes, unless it is revoked before. */
  readonly appliesAt: string;
  readonly revokedAt: string | null;
};

export type ListApprovalKeysResponse = {
  readonly data: readonly ApprovalKey[];
};

export type RegisterApprovalKeyRequest = {
  /** An Ed25519 public key, 32 bytes in lower-case hex. */
  readonly publicKey: string;
};

export type RegisterApprovalKeyResponse = {
  readonly approvalKey: ApprovalKey;
};

export type CreateApiKeyRequest = {
  readonly scopes: readonly (
    | "gateway"
    | "payments:read"
    | "payments:write"
    | "refunds"
    | "merchants"
    | "settlements"
    | "settlements:approve"
    | "webhooks"
    | "keys"
  )[];
  readonly merchantIds?: readonly string[] | null;
  readonly allowedCidrs?: readonly string[] | null;
  readonly expiresAt?: string | null;
};

export type ApiKey = {
  readonly id: string;
  readonly mode: "test" | "live";
  /** The last four characters of the key. */
  readonly hint: string;
  readonly scopes: readonly (
    | "gateway"
    | "payments:read"
    | "payments:write"
    | "refunds"
    | "merchants"
    | "settlements"
    | "settlements:approve"
    | "webhooks"
    | "keys"
  )[];
  /** The only merchants that the key reaches; null: all of the account and mode. */
  readonly merchantIds: readonly string[] | null;
  /** The only addresses that the key works from; null: any. */
  readonly allowedCidrs: readonly string[] | null;
  readonly expiresAt: string | null;
  /** The key that created it; null: the operator. */
  readonly createdBy: string | null;
  /** ISO 8601 with milliseconds, UTC. */
  readonly createdAt: string;
  readonly revokedAt: string | null;
  /** Until when the secret before the last rotation works. */
  readonly previousUntil: string | null;
  /** Stored at most once a minute. */
  readonly lastUsedAt: string | null;
  readonly lastUsedAddress: string | null;
};

export type CreateApiKeyResponse = {
  readonly apiKey: ApiKey;
  /** The key itself. It is shown once and not stored. */
  readonly key: string;
};

export type ListApiKeysResponse = {
  readonly data: readonly ApiKey[];
  /** The cursor of the next page; null on the last page. */
  readonly nextCursor: string | null;
};

export type GetApiKeyResponse = {
  readonly apiKey: ApiKey;
};

export type RotateApiKeyRequest = {
  /** Default: in 24 hours; at most 30 days away. A time that has come ends the former secret at once. */
  readonly previousUntil?: string | null;
};

export type RevokeApiKeyRequest = {
  readonly withCreated?: boolean | null;
};

export type RevokeApiKeyResponse = {
  readonly apiKey: ApiKey;
  /** The keys that this call revoked. */
  readonly revoked: readonly string[];
};

/** Lets wallets call the gateway for the account's payments of one mode. */
export type AppId = {
  /**
   * What wallets send as App-Id; it is public.
   * @example 9f86d081884c7d659a2feaa0c55ad015
   */
  readonly id: string;
  /** ISO 8601 with milliseconds, UTC. */
  readonly createdAt: string;
  readonly revokedAt: string | null;
};

export type CreateAppIdResponse = {
  readonly appId: AppId;
};

export type ListAppIdsResponse = {
  readonly data: readonly AppId[];
  /** The cursor of the next page; null on the last page. */
  readonly nextCursor: string | null;
};

export type RevokeAppIdResponse = {
  readonly appId: AppId;
};

/**
 * - `payment.created`: a payment was created
 * - `payment.processing`: the buyer has committed to an option
 * - `payment.succeeded`: the money has arrived, as final as its network demands
 * - `payment.failed`: the payment ended without money
 * - `payment.expired`: the payment ended without money, because its deadline has passed
 * - `payment.cancelled`: the payment was cancelled
 * - `payment.settled`: the payout of the payment has arrived
 * - `refund.created`: a refund was requested, or recorded where the service sends nothing
 * - `refund.held`: screening rejects the refund's receiver, or the token's issuer blocks it
 * - `refund.succeeded`: the money of the refund has arrived
 * - `refund.failed`: the refund was withdrawn, and nothing was sent
 * - `destination.change_requested`: a change of where a merchant is paid was requested
 * - `destination.approved`: the change was approved before its waiting period ended
 * - `destination.applied`: payouts that begin from now on use the change
 * - `destination.rejected`: the change was rejected, withdrawn or replaced
 * - `approval_key.registered`: a key that may approve changes of where a merchant is paid was registered
 * - `approval_key.revoked`: an approval key was revoked and approves nothing any more
 * - `webhook_endpoint.created`: another webhook endpoint of the account was registered
 * - `webhook_endpoint.updated`: another webhook endpoint was changed, enabled or disabled, or its secret was rotated
 * - `webhook_endpoint.deleted`: another webhook endpoint was deleted
 * - `webhook_endpoint.disabled`: another webhook endpoint was disabled, because it failed for days
 * - `webhook_endpoint.test`: a test event was requested; sent to one endpoint, whatever its filters are
 * @example payment.succeeded
 */
export type EventType =
  | "payment.created"
  | "payment.processing"
  | "payment.succeeded"
  | "payment.failed"
  | "payment.expired"
  | "payment.cancelled"
  | "payment.settled"
  | "refund.created"
  | "refund.held"
  | "refund.succeeded"
  | "refund.failed"
  | "destination.change_requested"
  | "destination.approved"
  | "destination.applied"
  | "destination.rejected"
  | "approval_key.registered"
  | "approval_key.revoked"
  | "webhook_endpoint.created"
  | "webhook_endpoint.updated"
  | "webhook_endpoint.deleted"
  | "webhook_endpoint.disabled"
  | "webhook_endpoint.test";

export type CreateWebhookEndpointRequest = {
  /**
   * An https URL on the public internet. Each of the account's endpoints in a mode has another one.
   * @example https://shop.example.com/webhooks
   */
  readonly url: string;
  /** The only types that the endpoint receives; null: all of them, also later ones. */
  readonly eventTypes?: readonly EventType[] | null;
  /** The only merchants that the endpoint receives; null: all of them, also later ones. */
  readonly merchantIds?: readonly string[] | null;
  readonly payload?: ("full" | "thin") | null;
};

/** A URL that receives the events of an account in one mode. */
export type WebhookEndpoint = {
  /** @example whe_0f8c5b1d2e3a4f5061728394a5b6c7d8 */
  readonly id: string;
  /** @example https://shop.example.com/webhooks */
  readonly url: string;
  /**
   * A disabled endpoint receives nothing, except notices for 24 hours.
   */
  readonly status: "enabled" | "disabled";
  /** failing: it has accepted nothing for five days, and the service has disabled it. */
  readonly disabledReason: ("failing" | "requested") | null;
  readonly disabledAt: string | null;
  /** When the first failed request since the last success ended. Its event may be older. */
  readonly failingSince: string | null;
  /** The types that it receives; null: all of them. */
  readonly eventTypes: readonly string[] | null;
  /** The merchants whose events it receives; null: all of the account, also later ones. */
  readonly merchantIds: readonly string[] | null;
  /**
   * full: the whole object at the time of the event. thin: only its id, the merchant and the mode.
   * @example full
   */
  readonly payload: "full" | "thin";
  /**
   * operator: an operator of the service has registered it, and no API key can change it.
   */
  readonly managedBy: "account" | "operator";
  /** ISO 8601 with milliseconds, UTC. */
  readonly createdAt: string;
  /** Until when the secret before the last rotation signs too. */
  readonly previousUntil: string | null;
};

export type CreateWebhookEndpointResponse = {
  readonly webhookEndpoint: WebhookEndpoint;
  /**
   * Verifies the signatures of this endpoint (Standard Webhooks). It is shown only now.
   * @example whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw0f8K1cXbT0E=
   */
  readonly secret: string;
};

export type ListWebhookEndpointsResponse = {
  readonly data: readonly WebhookEndpoint[];
};

export type GetWebhookEndpointResponse = {
  readonly webhookEndpoint: WebhookEndpoint;
};

export type UpdateWebhookEndpointRequest = {
  readonly url?: string | null;
  /** The only types that the endpoint receives; null: all of them, also later ones. */
  readonly eventTypes?: readonly EventType[] | null;
  /** The only merchants that the endpoint receives; null: all of them, also later ones. */
  readonly merchantIds?: readonly string[] | null;
  readonly payload?: ("full" | "thin") | null;
  readonly status?: ("enabled" | "disabled") | null;
};

export type RotateWebhookSecretRequest = {
  readonly now?: boolean | null;
};

export type TestWebhookEndpointResponse = {
  readonly eventId: string;
};

/** An event, and the state of its delivery to one endpoint. */
export type WebhookDelivery = {
  /** @example evt_5f3b0c3be1e84b6d9a4ad6d1f1f6b7f0 */
  readonly eventId: string;
  /** The payment that the event is about. */
  readonly paymentId: string | null;
  /** The change of a destination that the event is about. */
  readonly changeId: string | null;
  /** The refund that the event is about. */
  readonly refundId: string | null;
  /** The approval key (public key) that the event is about. */
  readonly approvalKey: string | null;
  /** The webhook endpoint that the event is about. */
  readonly endpointId: string | null;
  /** @example payment.succeeded */
  readonly type: string;
  /** ISO 8601 with milliseconds, UTC. */
  readonly createdAt: string;
  /**
   * given_up: eight attempts have failed, or the endpoint was disabled or deleted before.
   * @example delivered
   */
  readonly status: "pending" | "delivered" | "given_up";
  readonly attemptsMade: number;
  /**
   * An HTTP status, or the reason why there was none.
   * @example 200
   */
  readonly lastOutcome: string | null;
  readonly deliveredAt: string | null;
  readonly nextAttemptAt: string | null;
};

export type ListWebhookDeliveriesResponse = {
  readonly data: readonly WebhookDelivery[];
  /** The cursor of the next page; null on the last page. */
  readonly nextCursor: string | null;
};

/** A delivery with its request and the responses to it. */
export type WebhookDeliveryDetail = {
  /** @example evt_5f3b0c3be1e84b6d9a4ad6d1f1f6b7f0 */
  readonly eventId: string;
  /** The payment that the event is about. */
  readonly paymentId: string | null;
  /** The change of a destination that the event is about. */
  readonly changeId: string | null;
  /** The refund that the event is about. */
  readonly refundId: string | null;
  /** The approval key (public key) that the event is about. */
  readonly approvalKey: string | null;
  /** The webhook endpoint that the event is about. */
  readonly endpointId: string | null;
  /** @example payment.succeeded */
  readonly type: string;
  /** ISO 8601 with milliseconds, UTC. */
  readonly createdAt: string;
  /**
   * given_up: eight attempts have failed, or the endpoint was disabled or deleted before.
   * @example delivered
   */
  readonly status: "pending" | "delivered" | "given_up";
  readonly attemptsMade: number;
  /**
   * An HTTP status, or the reason why there was none.
   * @example 200
   */
  readonly lastOutcome: string | null;
  readonly deliveredAt: string | null;
  readonly nextAttemptAt: string | null;
  readonly request: {
    /** Those of the newest attempt; signatures are removed. */
    readonly headers: {
      [key: string]: string;
    };
    /** The bytes that are signed and sent, by the present `payload` of the endpoint. */
    readonly body: string;
  };
  /** The newest 20 attempts of the last 30 days, the newest first. */
  readonly attempts: readonly WebhookAttempt[];
};

/** A request to an endpoint, and the beginning of its response. */
export type WebhookAttempt = {
  /** ISO 8601 with milliseconds, UTC. */
  readonly sentAt: string;
  readonly durationMs: number;
  /**
   * An HTTP status, or the reason why there was none.
   * @example 500
   */
  readonly outcome: string;
  /** The beginning of the response; null when there was none. */
  readonly response: {
    readonly contentType: string | null;
    /** The first 1,000 characters, without what looks like a secret. */
    readonly body: string;
  } | null;
};

export type GetWebhookDeliveryResponse = {
  readonly delivery: WebhookDeliveryDetail;
};

export type ReplayWebhookEventResponse = {
  readonly eventId: string;
};

export type ReplayWebhookEventsRequest = {
  readonly from?: string | null;
  readonly until?: string | null;
  readonly status?: "given_up" | null;
  readonly cursor?: string | null;
};

export type ReplayWebhookEventsResponse = {
  /** Events of this call. */
  readonly count: number;
  /** The cursor of the next page; null on the last page. */
  readonly nextCursor: string | null;
};

/** What happened to a payment or another object of the account. */
export type Event = {
  /** @example evt_5f3b0c3be1e84b6d9a4ad6d1f1f6b7f0 */
  readonly id: string;
  /** @example payment.succeeded */
  readonly type: string;
  /**
   * The version of the format.
   * @example 2026-05-18
   */
  readonly api_version: string;
  /** ISO 8601 with milliseconds, UTC. */
  readonly created_at: string;
  /**
   * The object at the time of the event; docs/webhooks.md describes the members of each type.
   * @example {
   *   "payment_id": "pay_6c1f0e4b9a7d4c0f8e2a1b3c5d7e9f01",
   *   "live": true,
   *   "status": "succeeded"
   * }
   */
  readonly data: {
    [key: string]: unknown;
  };
};

export type ListEventsResponse = {
  readonly data: readonly Event[];
  /** Continues after these events, also once there are more. Null while there are none at all. */
  readonly nextCursor: string | null;
  /** Whether there are more events already. */
  readonly hasMore: boolean;
};

export type GetEventResponse = {
  readonly event: Event;
};

/** A request of the account in test mode, without headers and bodies. */
export type RequestLogEntry = {
  /** @example 1772366400000-0 */
  readonly id: string;
  /** When the request ended. */
  readonly createdAt: string;
  /** @example POST */
  readonly method: string;
  /**
   * The path without its query, 200 characters at most.
   * @example /v1/payments
   */
  readonly path: string;
  /**
   * Null: the client has disconnected.
   * @example 400
   */
  readonly status: number | null;
  /** @example params_validation */
  readonly errorCode: string | null;
  /** @example 3f0c8a52-7d1e-4b6a-9c25-8e4d1f7a6b30 */
  readonly requestId: string;
  /** @example 12 */
  readonly durationMs: number;
};

export type ListRequestLogsResponse = {
  readonly data: readonly RequestLogEntry[];
  readonly nextCursor: string | null;
};

/** What a buyer sees of a payment. */
export type PaymentInfo = {
  readonly paymentId: string;
  readonly status: PaymentStatus;
  readonly amount: Amount;
  /** Unix time in seconds. */
  readonly expiresAt: number;
  readonly merchant: {
    readonly name: string;
    readonly iconUrl?: string;
  };
  readonly buyer: {
    readonly accountCaip10: string;
    readonly accountProviderName: string;
    readonly accountProviderIcon?: string;
  } | null;
};

export type GatewayGetPaymentOptionsRequest = {
  readonly accounts: readonly string[];
  /** Accepted and ignored. */
  readonly refresh?: unknown;
};

/** How the accounts can pay. */
export type GetPaymentOptionsResponse = {
  readonly options: readonly PaymentOption[];
  /** Present when any option needs data. */
  readonly collectData: CollectData | null;
  readonly info?: PaymentInfo | null;
};

/** One way to pay. */
export type PaymentOption = {
  readonly id: string;
  /** The same as id. */
  readonly optionId: string;
  /** CAIP-10 account that pays. */
  readonly account: string;
  readonly amount: Amount;
  /** Estimated time to success, seconds. */
  readonly etaS: number;
  readonly expiresAt: number | null;
  readonly actions: readonly Action[];
  readonly collectData: CollectData | null;
};

/** An action that a wallet executes, or (build) resolves by fetch first. */
export type Action =
  | {
      readonly type: "walletRpc";
      readonly data: {
        readonly chain_id: string;
        readonly method: string;
        readonly params: readonly unknown[];
      };
    }
  | {
      readonly type: "build";
      readonly data: {
        readonly data: string;
      };
    };

/** The buyer's data that is required before this option can be confirmed. */
export type CollectData = {
  /** Page that collects the data, for a web view; for this option's account. */
  readonly url: string;
  /** JSON Schema 2020-12 of the data. */
  readonly schema: {
    [key: string]: unknown;
  } | null;
  /**
   * @deprecated
   * For old clients; the schema is authoritative.
   */
  readonly fields: readonly {
    readonly type: "text" | "date" | "checkbox";
    readonly id: string;
    readonly name: string;
    readonly required: boolean;
  }[];
};

export type GatewayFetchActionsRequest = {
  readonly optionId: string;
  readonly data: string;
};

/** Actions to execute, in order. */
export type FetchActionsResponse = {
  readonly actions: readonly Action[];
};

export type GatewayConfirmPaymentRequest = {
  readonly optionId: string;
  readonly results: readonly {
    readonly type: "walletRpc";
    readonly data: readonly string[];
  }[];
  readonly collectedData?: {
    readonly fields: readonly {
      readonly id: string;
      readonly value: string;
    }[];
  } | null;
  /** Accepted and ignored. */
  readonly excludeFromRelayer?: unknown;
};

export type ListPaymentsQuery = {
  /** The nextCursor of the page before; leave it out for the first page. */
  readonly cursor?: string;
  /** How many entries a page has at most. */
  readonly limit?: number;
  /** Only entries that were created at this time or later. */
  readonly startTs?: string;
  /** Only entries that were created before this time. */
  readonly endTs?: string;
  /** Only entries with this status. */
  readonly status?: readonly PaymentStatus[];
  /**
   * What the list is sorted by. amount compares minor units and ignores the unit.
   */
  readonly sortBy?: "date" | "amount";
  /**
   * The direction of the order.
   */
  readonly sortDir?: "asc" | "desc";
  /** Only payments in assets with this symbol. */
  readonly token_symbol?: readonly string[];
  /** Only payments on these chains (CAIP-2), separated by commas or in repeated parameters. */
  readonly network?: readonly string[];
  /** Only payments whose referenceId contains this text, whatever its case. */
  readonly referenceId?: string;
  /** Only payments whose metadata has this value under this key, as `key:value`. Repeatable; all must match. */
  readonly metadata?: readonly string[];
  /**
   * @deprecated
   * Accepted and ignored; use token_symbol.
   */
  readonly asset?: string;
  /** The id of a merchant. */
  readonly merchantId?: readonly string[];
};

export type GetPaymentStatusQuery = {
  /** How long the response may be held until the status changes, milliseconds. The service holds it 25 s at most. */
  readonly maxPollMs?: number;
};

export type GetMerchantPaymentStatusQuery = {
  /** How long the response may be held until the status changes, milliseconds. The service holds it 25 s at most. */
  readonly maxPollMs?: number;
};

export type ListRefundsQuery = {
  /** The nextCursor of the page before; leave it out for the first page. */
  readonly cursor?: string;
  /** How many entries a page has at most. */
  readonly limit?: number;
  /** The id of a payment. */
  readonly paymentId?: string;
  /** The id of a merchant. */
  readonly merchantId?: readonly string[];
  /** Only entries with this status. */
  readonly status?: readonly RefundStatus[];
  /** Only entries that were created at this time or later. */
  readonly startTs?: string;
  /** Only entries that were created before this time. */
  readonly endTs?: string;
};

export type ListMerchantPaymentsQuery = {
  /** The nextCursor of the page before; leave it out for the first page. */
  readonly cursor?: string;
  /** How many entries a page has at most. */
  readonly limit?: number;
  /** Only entries that were created at this time or later. */
  readonly startTs?: string;
  /** Only entries that were created before this time. */
  readonly endTs?: string;
  /** Only entries with this status. */
  readonly status?: readonly PaymentStatus[];
  /**
   * What the list is sorted by. amount compares minor units and ignores the unit.
   */
  readonly sortBy?: "date" | "amount";
  /**
   * The direction of the order.
   */
  readonly sortDir?: "asc" | "desc";
  /** Only payments in assets with this symbol. */
  readonly token_symbol?: readonly string[];
  /** Only payments on these chains (CAIP-2), separated by commas or in repeated parameters. */
  readonly network?: readonly string[];
  /** Only payments whose referenceId contains this text, whatever its case. */
  readonly referenceId?: string;
  /** Only payments whose metadata has this value under this key, as `key:value`. Repeatable; all must match. */
  readonly metadata?: readonly string[];
  /**
   * @deprecated
   * Accepted and ignored; use token_symbol.
   */
  readonly asset?: string;
};

export type ListBalancesQuery = {
  /** The nextCursor of the page before; leave it out for the first page. */
  readonly cursor?: string;
  /** How many entries a page has at most. */
  readonly limit?: number;
};

export type ListMerchantBalancesQuery = {
  /** The nextCursor of the page before; leave it out for the first page. */
  readonly cursor?: string;
  /** How many entries a page has at most. */
  readonly limit?: number;
};

export type GetStatementQuery = {
  /** The nextCursor of the page before; leave it out for the first page. */
  readonly cursor?: string;
  /** How many entries a page has at most. */
  readonly limit?: number;
  /** A UTC day, inclusive. */
  readonly from: string;
  /** A UTC day, inclusive. */
  readonly until: string;
};

export type GetMerchantStatementQuery = {
  /** The nextCursor of the page before; leave it out for the first page. */
  readonly cursor?: string;
  /** How many entries a page has at most. */
  readonly limit?: number;
  /** A UTC day, inclusive. */
  readonly from: string;
  /** A UTC day, inclusive. */
  readonly until: string;
};

export type ListMerchantsQuery = {
  /** The nextCursor of the page before; leave it out for the first page. */
  readonly cursor?: string;
  /** How many entries a page has at most. */
  readonly limit?: number;
  /**
   * Only entries with this status.
   */
  readonly status?: "active" | "inactive" | "suspended";
  /** A part of the name, or a whole id. */
  readonly search?: string;
};

export type ListSettlementChangesQuery = {
  /** The nextCursor of the page before; leave it out for the first page. */
  readonly cursor?: string;
  /** How many entries a page has at most. */
  readonly limit?: number;
  /**
   * Only entries with this status.
   */
  readonly status?: "requested" | "approved" | "applied" | "rejected";
};

export type ListApiKeysQuery = {
  /** The nextCursor of the page before; leave it out for the first page. */
  readonly cursor?: string;
  /** How many entries a page has at most. */
  readonly limit?: number;
};

export type ListAppIdsQuery = {
  /** The nextCursor of the page before; leave it out for the first page. */
  readonly cursor?: string;
  /** How many entries a page has at most. */
  readonly limit?: number;
};

export type ListWebhookDeliveriesQuery = {
  /** The nextCursor of the page before; leave it out for the first page. */
  readonly cursor?: string;
  /** How many entries a page has at most. */
  readonly limit?: number;
  /** Only the events of this payment. */
  readonly paymentId?: string;
  /**
   * given_up: eight attempts have failed, or the endpoint was disabled or deleted before.
   */
  readonly status?: "pending" | "delivered" | "given_up";
};

export type ListEventsQuery = {
  /** The nextCursor of the page before; leave it out for the first page. */
  readonly cursor?: string;
  /** How many entries a page has at most. */
  readonly limit?: number;
  /**
   * full: the whole object at the time of the event. thin: only its id, the merchant and the mode.
   */
  readonly payload?: "full" | "thin";
  /**
   * Where the list begins without a cursor. latest: with the newest events, as many as limit. end: after the newest event. With both, nextCursor continues with later events; while hasMore is true, events before it follow: repeat the call.
   */
  readonly start?: "beginning" | "latest" | "end";
};

export type GetEventQuery = {
  /**
   * full: the whole object at the time of the event. thin: only its id, the merchant and the mode.
   */
  readonly payload?: "full" | "thin";
};

export type ListRequestLogsQuery = {
  /** The nextCursor of the page before; leave it out for the first page. */
  readonly cursor?: string;
  /** How many entries a page has at most. */
  readonly limit?: number;
  /** Only entries after the one with this id. */
  readonly after?: string;
  /** Only requests with this HTTP status, or of this class, such as 4xx. */
  readonly status?: string;
  /** Only requests whose path contains this text. */
  readonly path?: string;
};

export type GatewayGetPaymentOptionsQuery = {
  /** Whether the response has the payment's info. Default: false. */
  readonly includePaymentInfo?: boolean;
};

export type GatewayConfirmPaymentQuery = {
  /** How long the response may be held until the status changes, milliseconds. The service holds it 25 s at most. */
  readonly maxPollMs?: number;
};

export type GatewayGetPaymentStatusQuery = {
  /** How long the response may be held until the status changes, milliseconds. The service holds it 25 s at most. */
  readonly maxPollMs?: number;
};
