import { z } from "zod";
import { amountResponse, instant, paymentState, statusResponse, unixTime } from "../contract/response-schemas.ts";
import { description, metadata } from "./metadata-schemas.ts";

/** What a merchant says of a payment; additions to the specification. */
const annotations = { description: description.nullable(), metadata };

/** Response schemas of the merchant operations (specification, 2.7 and 2.8). */
const merchant = z
  .object({
    id: z.string(),
    name: z.string(),
    email: z.string(),
    status: z.enum(["active", "inactive", "suspended"]),
    createdAt: instant,
    iconUrl: z.string().nullable().meta({ description: "The logo's URL, as it was given." }),
    servedIconUrl: z.url().nullable().meta({ description: "The service's copy of the logo, as buyers see it." }),
  })
  .meta({ id: "Merchant" });

export const cryptoSettlement = z
  .object({
    id: z.string(),
    asset: z.string().meta({ description: "CAIP-19" }),
    destination: z.string().meta({
      description:
        "CAIP-10, on the asset's chain. The account that is paid now; of a settlement that does not apply yet, the requested one.",
    }),
    pendingChange: z
      .object({
        changeId: z.string(),
        destination: z.string(),
        requestedAt: instant,
        appliesAt: instant,
      })
      .optional()
      .meta({ description: "The change that waits; absent when none does. An addition to the specification." }),
  })
  .meta({ id: "CryptoSettlement" });

export const nextCursor = z
  .string()
  .nullable()
  .meta({ description: "The cursor of the next page; null on the last page." });

const changeActor = z
  .object({
    type: z.enum(["key", "operator"]),
    id: z.string().nullable().meta({ description: "The id of the API key; null for an operator of the service." }),
    address: z.string().nullable().meta({ description: "The address that the request came from." }),
  })
  .meta({ id: "ChangeActor" });

export const settlementChange = z
  .object({
    changeId: z.string(),
    settlementId: z.string(),
    asset: z.string(),
    previousDestination: z.string().nullable().meta({ description: "Null for an addition." }),
    destination: z.string().nullable().meta({ description: "Null for a deletion." }),
    status: z.enum(["requested", "approved", "applied", "rejected"]),
    requestedBy: changeActor,
    requestedAt: instant,
    appliesAt: instant.meta({ description: "When it applies unless it is approved or rejected before." }),
    decidedBy: changeActor.nullable(),
    decidedAt: instant.nullable(),
    rejectionReason: z.enum(["decided", "withdrawn", "replaced"]).nullable(),
    appliedAt: instant.nullable(),
  })
  .meta({ id: "SettlementChange", description: "A request to add, change or delete a settlement destination." });

const approvalKey = z
  .object({
    publicKey: z.string().meta({ description: "Ed25519, 32 bytes in lower-case hex." }),
    status: z.enum(["waiting", "active", "revoked"]),
    deployment: z.string().meta({ description: "The name of this service in the statements that the key signs." }),
    registeredBy: changeActor,
    registeredAt: instant,
    appliesAt: instant.meta({ description: "When it approves changes, unless it is revoked before." }),
    revokedAt: instant.nullable(),
  })
  .meta({ id: "ApprovalKey", description: "A public key by which a merchant approves changes of its destinations." });

export const approvalKeyResponse = z.object({ approvalKey });
export const approvalKeyListResponse = z.object({ data: z.array(approvalKey) });

export const settlementChangeListResponse = z.object({ data: z.array(settlementChange), nextCursor });

/** There are no fiat settlements; clients read the member. */
export const settlementsResponse = z
  .object({ crypto: z.array(cryptoSettlement), fiat: z.array(z.object({})).max(0) })
  .meta({ id: "Settlements" });

export const merchantResponse = z.object({ merchant });
export const merchantWithSettlementsResponse = z.object({
  merchant: merchant.extend({ settlements: settlementsResponse }),
});

export const merchantListResponse = z.object({
  data: z.array(merchant),
  merchants: z.array(merchant).meta({ description: "The same as data." }),
  totalCount: z.int().min(0),
  nextCursor,
});

export const deletedResponse = z.object({ id: z.string(), deleted: z.literal(true) });

export const paymentResponse = statusResponse
  .extend({
    id: z.string(),
    paymentId: z.string().meta({ description: "The same as id." }),
    merchantId: z.string(),
    referenceId: z.string().nullable(),
    ...annotations,
    amount: amountResponse,
    createdAt: instant,
    expiresAt: unixTime,
    gatewayUrl: z.url().meta({ description: "The checkout page for the buyer, as the creation has returned it." }),
    checkout: z.object({ successUrl: z.string(), errorUrl: z.string() }).nullable(),
    settlement: z
      .object({ successful: z.object({ txId: z.string(), amount: amountResponse }) })
      .nullable()
      .meta({ description: "The payout, once it has arrived." }),
    refundedAmount: amountResponse.nullable().meta({
      description:
        "What its refunds return to the payer, also those that are still pending and not those that were withdrawn, in the unit of info.optionAmount, which it can exceed after a restore of the database; null without a refund.",
    }),
  })
  .meta({ id: "Payment", description: "A payment, as its merchant reads it." });

const listedPayment = z
  .object({
    paymentId: z.string(),
    merchantId: z.string(),
    merchant: z.object({ id: z.string(), name: z.string(), iconUrl: z.string().optional() }),
    referenceId: z.string().nullable(),
    ...annotations,
    status: paymentState,
    isTerminal: z.boolean(),
    fiatAmount: amountResponse.meta({ description: "The requested amount, in its unit." }),
    tokenAmount: amountResponse.nullable(),
    buyer: z.object({ accountCaip10: z.string() }).nullable(),
    transaction: z.object({ networkId: z.string(), hash: z.string().nullable() }).nullable(),
    fees: z
      .object({ total: amountResponse, fixed: amountResponse, percentage: z.number() })
      .nullable()
      .meta({ description: "The operator's fees on tokenAmount; percentage in percent." }),
    settlement: z
      .object({ settled: z.boolean(), amount: amountResponse.nullable(), txHash: z.string().nullable() })
      .nullable(),
    createdAt: instant,
    lastUpdatedAt: instant,
    settledAt: instant.nullable(),
  })
  .meta({ id: "ListedPayment" });

export const paymentListResponse = z.object({
  data: z.array(listedPayment),
  nextCursor,
  stats: z
    .object({
      totalRevenue: z.array(z.object({ amount: z.number(), currency: z.string() })).meta({
        description:
          "Sum of the requested amounts of succeeded payments, in whole units. A JSON number, as clients read it: exact to 15 digits.",
      }),
      totalTransactions: z.int().min(0),
      totalCustomers: z.int().min(0),
    })
    .meta({ description: "Over every payment that matches the filters, not only this page." }),
});
