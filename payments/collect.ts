import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { findOption, type OptionRow } from "../db/options.ts";
import { findPayment } from "../db/payments.ts";
import type { Db, Mode } from "../db/tables.ts";
import { type CollectedId, collectedSchema, expected } from "./collected-schema.ts";
import type { PaymentDeps } from "./deps.ts";
import { done, type Result, refuse } from "./errors.ts";
import { newId } from "./ids.ts";

/** What a buyer says of himself, as wallets send it: texts, also for the consent. */
export type CollectedField = { id: string; value: string };

const ajv = new Ajv2020({ allErrors: true });
(formats as unknown as (ajv: Ajv2020) => void)(ajv);
const validate = ajv.compile(collectedSchema);
/** Nobody who pays is older, years. */
const OLDEST = 130;

/**
 * What is wrong with the data, naming the field and never its value; undefined when it is whole. The schema decides; a
 * date of birth has to be one that somebody alive can have.
 */
export function findCollectedFault(fields: readonly CollectedField[], now: Date): string | undefined {
  const where = (id: string, what: string) => `collectedData.fields.${id}: ${what}`;
  const ids = fields.map(({ id }) => id);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index && Object.hasOwn(expected, id));
  if (twice) return where(twice, "stands twice");
  const data = Object.fromEntries(
    fields.map(({ id, value }) => [id, id === "tosConfirmed" && value === "true" ? true : value]),
  );
  if (!validate(data)) return describe(validate.errors?.[0], where);
  const born = new Date(`${data.dob}T00:00:00Z`);
  const years = now.getUTCFullYear() - born.getUTCFullYear();
  return born > now || years > OLDEST ? where("dob", expected.dob) : undefined;
}

function describe(error: ErrorObject | undefined, where: (id: string, what: string) => string): string {
  const id = error?.instancePath.slice(1) ?? "";
  if (Object.hasOwn(expected, id)) return where(id, expected[id as CollectedId]);
  const missing: unknown = error?.params.missingProperty;
  if (typeof missing === "string" && error?.schemaPath === "#/required") return where(missing, "is missing");
  if (error?.keyword === "additionalProperties") return "collectedData.fields: holds an id that is not asked for";
  return "collectedData.fields: expected pobCountry and pobAddress, or porCountry and porAddress";
}

/** Keeps what the buyer said of himself for a payment, sealed, until `deleteAt`. What was kept first stays. */
export async function keepCollected(
  deps: Pick<PaymentDeps, "sealer" | "now"> & { db: Db },
  args: { option: OptionRow; fields: readonly CollectedField[]; deleteAt: Date },
): Promise<void> {
  const id = newId("cdat");
  const { keyId: key_id, sealed } = deps.sealer.seal(JSON.stringify(args.fields), id);
  await deps.db
    .insertInto("collected_data")
    .values({
      id,
      payment_id: args.option.payment_id,
      account: payerOf(args.option),
      key_id,
      sealed,
      created_at: deps.now(),
      delete_at: args.deleteAt,
    })
    .onConflict((conflict) => conflict.columns(["payment_id", "account"]).doNothing())
    .execute();
}

/** True when this payer has said what was asked for this payment. */
export async function hasCollected(db: Db, option: OptionRow): Promise<boolean> {
  const row = await db
    .selectFrom("collected_data")
    .select("id")
    .where("payment_id", "=", option.payment_id)
    .where("account", "=", payerOf(option))
    .executeTakeFirst();
  return row !== undefined;
}

/** One spelling of the account that pays. */
export const payerOf = ({ chain, payer }: Pick<OptionRow, "chain" | "payer">) => `${chain}:${payer}`;

/**
 * Whether an option's buyer still has to say who he is. Refuses with `payment_not_found` (also for an option that is none
 * of the payment's), and `invalid_state` where nothing is asked any more.
 */
export async function findAsked(
  deps: Pick<PaymentDeps, "db">,
  args: { paymentId: string; mode: Mode; optionId: string },
): Promise<Result<{ given: boolean }>> {
  const payment = await findPayment(deps.db, { id: args.paymentId, mode: args.mode });
  const option = payment && (await findOption(deps.db, { id: args.optionId, paymentId: payment.id }));
  if (!option) return refuse("payment_not_found", "no such payment");
  if (payment.state !== "requires_action") return refuse("invalid_state", `the payment is ${payment.state}`);
  if (!option.needs_data) return refuse("invalid_state", "this option needs no data");
  return done({ given: await hasCollected(deps.db, option) });
}

/**
 * Takes the data ahead of the confirm, as a page for buyers does: afterwards confirm needs none for that account.
 * Refuses like findAsked, and with `invalid_params` naming the field.
 */
export async function storeCollected(
  deps: Pick<PaymentDeps, "db" | "sealer" | "now">,
  args: { paymentId: string; mode: Mode; optionId: string; fields: readonly CollectedField[]; keepMs: number },
): Promise<Result<object>> {
  const asked = await findAsked(deps, args);
  if (!asked.ok) return asked;
  const option = await findOption(deps.db, { id: args.optionId, paymentId: args.paymentId });
  if (!option) return refuse("payment_not_found", "no such payment");
  const fault = findCollectedFault(args.fields, deps.now());
  if (fault) return refuse("invalid_params", fault);
  const deleteAt = new Date(deps.now().getTime() + args.keepMs);
  await keepCollected(deps, { option, fields: args.fields, deleteAt });
  return done({});
}

/** What is kept of a payment's buyers, opened: for an operator who has to answer for it. */
export async function readCollected(
  deps: Pick<PaymentDeps, "db" | "sealer">,
  paymentId: string,
): Promise<{ account: string; fields: CollectedField[]; deleteAt: Date }[]> {
  const rows = await deps.db.selectFrom("collected_data").selectAll().where("payment_id", "=", paymentId).execute();
  return rows.map(({ id, account, key_id: keyId, sealed, delete_at: deleteAt }) => ({
    account,
    fields: JSON.parse(deps.sealer.open({ keyId, sealed }, id)) as CollectedField[],
    deleteAt,
  }));
}
