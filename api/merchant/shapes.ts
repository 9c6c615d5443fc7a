import { z } from "zod";
import { instant } from "../shapes.ts";

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
