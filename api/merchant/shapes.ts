import { z } from "zod";
import { amountAnswer, instant, paymentState, statusAnswer, unixTime } from "../shapes.ts";

/** What the answers about merchants and where they are paid look like (specification, 2.7 and 2.8). */
const merchant = z
  .object({
    id: z.string(),
    name: z.string(),
    email: z.string(),
    status: z.enum(["active", "inactive", "suspended"]),
    createdAt: instant,
    iconUrl: z.url().nullable().meta({ description: "Our copy of the logo, as buyers see it." }),
  })
  .meta({ id: "Merchant" });

export const cryptoSettlement = z
  .object({
    id: z.string(),
    asset: z.string().meta({ description: "CAIP-19" }),
    destination: z.string().meta({ description: "CAIP-10, on the asset's chain" }),
  })
  .meta({ id: "CryptoSettlement" });

/** There is no settlement in fiat; the member is there for clients that read it. */
export const settlementsAnswer = z
  .object({ crypto: z.array(cryptoSettlement), fiat: z.array(z.object({})).max(0) })
  .meta({ id: "Settlements" });

export const merchantAnswer = z.object({ merchant });
export const merchantWithSettlements = z.object({ merchant: merchant.extend({ settlements: settlementsAnswer }) });

export const nextCursor = z
  .string()
  .nullable()
  .meta({ description: "Give it as cursor for the next page; null on the last one." });

export const merchantListAnswer = z.object({
  data: z.array(merchant),
  merchants: z.array(merchant).meta({ description: "The same as data." }),
  totalCount: z.int().min(0),
  nextCursor,
});

export const deletedAnswer = z.object({ id: z.string(), deleted: z.literal(true) });

export const refundListAnswer = z.object({
  data: z.array(
    z
      .object({
        refundId: z.string(),
        paymentId: z.string(),
        amount: amountAnswer,
        status: z.enum(["waiting", "held", "processing", "paid", "marked", "withdrawn"]).meta({
          description:
            "waiting: for the merchant's balance. held: its receiver is not served. marked: no money of ours is moved.",
        }),
        createdAt: instant,
        paidAt: instant.nullable(),
      })
      .meta({ id: "Refund" }),
  ),
});

export const withdrawnAnswer = z.object({
  refundId: z.string(),
  paymentId: z.string(),
  status: z.literal("withdrawn"),
});

export const paymentDetail = statusAnswer
  .extend({
    id: z.string(),
    paymentId: z.string().meta({ description: "The same as id." }),
    merchantId: z.string(),
    referenceId: z.string().nullable(),
    amount: amountAnswer,
    createdAt: instant,
    expiresAt: unixTime,
    checkout: z.object({ successUrl: z.string(), errorUrl: z.string() }).nullable(),
    settlement: z
      .object({ successful: z.object({ txId: z.string(), amount: amountAnswer }) })
      .nullable()
      .meta({ description: "The payout, once it has arrived." }),
  })
  .meta({ id: "Payment", description: "A payment, for its merchant." });

const listedPayment = z
  .object({
    paymentId: z.string(),
    merchantId: z.string(),
    merchant: z.object({ id: z.string(), name: z.string(), iconUrl: z.string().optional() }),
    referenceId: z.string().nullable(),
    status: paymentState,
    isTerminal: z.boolean(),
    fiatAmount: amountAnswer.meta({ description: "What was asked for, in its unit." }),
    tokenAmount: amountAnswer.nullable(),
    buyer: z.object({ accountCaip10: z.string() }).nullable(),
    transaction: z.object({ networkId: z.string(), hash: z.string().nullable() }).nullable(),
    fees: z
      .object({ total: amountAnswer, fixed: amountAnswer, percentage: z.number() })
      .nullable()
      .meta({ description: "What the operator takes of tokenAmount; percentage in percent." }),
    settlement: z
      .object({ settled: z.boolean(), amount: amountAnswer.nullable(), txHash: z.string().nullable() })
      .nullable(),
    createdAt: instant,
    lastUpdatedAt: instant,
    settledAt: instant.nullable(),
  })
  .meta({ id: "ListedPayment" });

export const paymentListAnswer = z.object({
  data: z.array(listedPayment),
  nextCursor,
  stats: z
    .object({
      totalRevenue: z.array(z.object({ amount: z.number(), currency: z.string() })).meta({
        description:
          "What was asked by the payments that succeeded, in whole units. A JSON number, as clients read it: exact to 15 digits.",
      }),
      totalTransactions: z.int().min(0),
      totalCustomers: z.int().min(0),
    })
    .meta({ description: "Over everything that fits the filters, not over the page." }),
});
