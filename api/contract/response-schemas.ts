import { z } from "zod";
import { errorCodes, reservedCodes } from "../../payments/error-codes.ts";

/**
 * Response schemas (specification, part 2; wire contract of deployed wallets). `meta.id` names a schema in the OpenAPI
 * document.
 */
const named = <S extends z.ZodType>(id: string, description: string, schema: S): S => schema.meta({ id, description });

const errorCode = named(
  "ErrorCode",
  `Tells a client what failed. Reserved, and returned by nothing: ${reservedCodes.join(", ")}.`,
  z.enum(errorCodes).meta({
    "x-enumDescriptions": Object.fromEntries(reservedCodes.map((code) => [code, "Reserved: nothing returns it."])),
  }),
);

export const errorResponse = named(
  "ErrorResponse",
  "Every response that is not a success.",
  z.object({
    code: errorCode,
    message: z.string().meta({ description: "For people; names the field if the error concerns one." }),
  }),
);

const amountDisplay = named(
  "AmountDisplay",
  "How to display an amount.",
  z.object({
    assetSymbol: z.string(),
    assetName: z.string(),
    decimals: z.int().min(0).meta({ format: "int32" }),
    iconUrl: z.string().nullish(),
    networkIconUrl: z.string().nullish(),
    networkName: z.string().nullish(),
  }),
);

export const amountResponse = named(
  "Amount",
  "An amount, in minor units of its unit.",
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
  .meta({ description: "Delay before the next poll, milliseconds; null when the payment is final." });
export const unixTime = z.int().min(0).meta({ description: "Unix time in seconds." });
export const instant = z.iso.datetime().meta({ description: "ISO 8601 with milliseconds, UTC." });

const paymentInformation = named(
  "PaymentInformation",
  "How a payment was paid.",
  z.object({
    txId: z.string().meta({ description: "Transaction hash; in test mode test: followed by the payment's id." }),
    optionAmount: amountResponse,
  }),
);

const failureCode = z.enum(["declined_user"]).nullable().meta({ description: "Set only when the payment failed." });

export const statusResponse = named(
  "GetPaymentStatusResponse",
  "The status of a payment.",
  z.object({
    status: paymentState,
    isFinal: z.boolean(),
    pollInMs,
    info: paymentInformation.nullable(),
    failureCode: failureCode.optional(),
  }),
);

export const createdResponse = named(
  "CreatePaymentResponse",
  "A created payment.",
  z.object({
    id: z.string(),
    paymentId: z.string().meta({ description: "The same as id." }),
    gatewayUrl: z.url().meta({ description: "The checkout page for the buyer; a wallet opens it as a payment link." }),
    status: paymentState,
    expiresAt: unixTime,
    isFinal: z.boolean(),
    pollInMs,
    warnings: z
      .array(z.object({ field: z.string(), message: z.string() }))
      .meta({ description: "Members of the request that the payment does not follow, and why." }),
  }),
);

export const paymentInfo = named(
  "PaymentInfo",
  "What a buyer sees of a payment.",
  z.object({
    paymentId: z.string(),
    status: paymentState,
    amount: amountResponse,
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

const action = named(
  "Action",
  "An action that a wallet executes, or (build) resolves by fetch first.",
  z.discriminatedUnion("type", [
    z.object({
      type: z.literal("walletRpc"),
      data: z.object({ chain_id: z.string(), method: z.string(), params: z.array(z.any()) }),
    }),
    z.object({ type: z.literal("build"), data: z.object({ data: z.string() }) }),
  ]),
);

const collectData = named(
  "CollectData",
  "The buyer's data that is required before this option can be confirmed.",
  z.object({
    url: z.string().meta({ description: "Page that collects the data, for a web view; for this option's account." }),
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
      .meta({ description: "For old clients; the schema is authoritative.", deprecated: true }),
  }),
);

const optionResponse = named(
  "PaymentOption",
  "One way to pay.",
  z.object({
    id: z.string(),
    optionId: z.string().meta({ description: "The same as id." }),
    account: z.string().meta({ description: "CAIP-10 account that pays." }),
    amount: amountResponse,
    etaS: z.int().meta({ format: "int32", description: "Estimated time to success, seconds." }),
    expiresAt: unixTime.nullable(),
    actions: z.array(action),
    collectData: collectData.nullable(),
  }),
);

export const optionsResponse = named(
  "GetPaymentOptionsResponse",
  "How the accounts can pay.",
  z.object({
    options: z.array(optionResponse),
    collectData: collectData.nullable().meta({ description: "Present when any option needs data." }),
    info: paymentInfo.nullish(),
  }),
);

export const actionsResponse = named(
  "FetchActionsResponse",
  "Actions to execute, in order.",
  z.object({ actions: z.array(action) }),
);

export const cancelledResponse = named(
  "CancelPaymentResponse",
  "A cancelled payment.",
  z.object({
    paymentId: z.string(),
    status: z.literal("cancelled"),
    cancelledAt: instant,
    cancelledReason: z.enum(["cancelled_by_user", "cancelled_by_merchant"]),
  }),
);
