import { z } from "zod";
import { errorCodes } from "../payments/errors.ts";

/** What answers look like (specification, part 2; wire-contract of deployed wallets). `meta.id` names it in the description. */
const named = <S extends z.ZodType>(id: string, description: string, schema: S): S => schema.meta({ id, description });

export const errorResponse = named(
  "ErrorResponse",
  "Every answer that is no success.",
  z.object({
    code: z.enum(errorCodes),
    message: z.string().meta({ description: "For people; names the field where there is one." }),
  }),
);

export const amountDisplay = named(
  "AmountDisplay",
  "How an amount is shown.",
  z.object({
    assetSymbol: z.string(),
    assetName: z.string(),
    decimals: z.int().min(0),
    iconUrl: z.string().nullish(),
    networkIconUrl: z.string().nullish(),
    networkName: z.string().nullish(),
  }),
);

export const amountAnswer = named(
  "Amount",
  "An amount in the minor units of its unit.",
  z.object({
    unit: z.string().meta({ description: "iso4217/ and a currency code, or caip19/ and an asset." }),
    value: z.string().regex(/^\d+$/),
    display: amountDisplay,
  }),
);

export const paymentState = z
  .enum(["requires_action", "processing", "succeeded", "failed", "expired", "cancelled"])
  .meta({ id: "PaymentStatus", description: "The last four are final." });

const pollInMs = z
  .int()
  .min(0)
  .nullable()
  .meta({ description: "Wait before the next question, milliseconds; null when the payment is final." });
export const unixTime = z.int().min(0).meta({ description: "Unix time in seconds." });
export const instant = z.iso.datetime().meta({ description: "ISO 8601 with milliseconds, UTC." });

export const paymentInformation = named(
  "PaymentInformation",
  "How a payment was paid.",
  z.object({
    txId: z.string().meta({ description: "Transaction hash; in test mode test: and the payment's id." }),
    optionAmount: amountAnswer,
  }),
);

export const failureCode = z.enum(["declined_user"]).nullable().meta({ description: "Only when failed." });

export const statusAnswer = named(
  "GetPaymentStatusResponse",
  "Where a payment stands.",
  z.object({
    status: paymentState,
    isFinal: z.boolean(),
    pollInMs,
    info: paymentInformation.nullable(),
    failureCode: failureCode.optional(),
  }),
);

export const createdAnswer = named(
  "CreatePaymentResponse",
  "A payment just made.",
  z.object({
    id: z.string(),
    paymentId: z.string().meta({ description: "The same as id." }),
    gatewayUrl: z.url().meta({ description: "Where the buyer goes; a wallet opens it as a payment link." }),
    status: paymentState,
    expiresAt: unixTime,
    isFinal: z.boolean(),
    pollInMs,
  }),
);

export const paymentInfo = named(
  "PaymentInfo",
  "What a buyer is shown of a payment.",
  z.object({
    paymentId: z.string(),
    status: paymentState,
    amount: amountAnswer,
    expiresAt: unixTime,
    merchant: z.object({ name: z.string(), iconUrl: z.url().optional() }),
    buyer: z
      .object({
        accountCaip10: z.string(),
        accountProviderName: z.string(),
        accountProviderIcon: z.string().optional(),
      })
      .nullable(),
  }),
);

export const action = named(
  "Action",
  "Something a wallet executes, or (build) has resolved by fetch first.",
  z.discriminatedUnion("type", [
    z.object({
      type: z.literal("walletRpc"),
      data: z.object({ chain_id: z.string(), method: z.string(), params: z.array(z.any()) }),
    }),
    z.object({ type: z.literal("build"), data: z.object({ data: z.string() }) }),
  ]),
);

export const collectData = named(
  "CollectData",
  "What has to be known of the buyer before this option can be confirmed.",
  z.object({
    url: z.string().meta({ description: "Page for a web view, for this option's account." }),
    schema: z.record(z.string(), z.any()).nullable().meta({ description: "JSON Schema 2020-12 of the data." }),
    fields: z
      .array(
        z.object({
          type: z.enum(["text", "date", "checkbox"]),
          id: z.string(),
          name: z.string(),
          required: z.boolean(),
        }),
      )
      .meta({ description: "For old clients; the schema is the truth.", deprecated: true }),
  }),
);

export const optionAnswer = named(
  "PaymentOption",
  "One way to pay.",
  z.object({
    id: z.string(),
    optionId: z.string().meta({ description: "The same as id." }),
    account: z.string().meta({ description: "CAIP-10 account that pays." }),
    amount: amountAnswer,
    etaS: z.int().meta({ description: "Usual time to success, seconds." }),
    expiresAt: unixTime.nullable(),
    actions: z.array(action),
    collectData: collectData.nullable(),
  }),
);

export const optionsAnswer = named(
  "GetPaymentOptionsResponse",
  "How the accounts can pay.",
  z.object({
    options: z.array(optionAnswer),
    collectData: collectData.nullable().meta({ description: "Present when any option needs data." }),
    info: paymentInfo.nullish(),
  }),
);

export const actionsAnswer = named(
  "FetchActionsResponse",
  "Actions to execute, in order.",
  z.object({ actions: z.array(action) }),
);

export const cancelledAnswer = named(
  "CancelPaymentResponse",
  "A cancelled payment.",
  z.object({
    paymentId: z.string(),
    status: z.literal("cancelled"),
    cancelledAt: instant,
    cancelledReason: z.enum(["cancelled_by_user", "cancelled_by_merchant"]),
  }),
);
