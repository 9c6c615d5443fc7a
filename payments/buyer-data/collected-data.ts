import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import {
  attachToAttempt,
  type CollectedRow,
  findPostedData,
  listCollected,
  upsertPostedData,
} from "../../db/queries/collected-data.ts";
import { findOption, type OptionRow } from "../../db/queries/payment-options.ts";
import { findPayment } from "../../db/queries/payments.ts";
import type { Db, Mode } from "../../db/tables.ts";
import type { Decrypt, Encrypt } from "../../runtime/encryption.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { newId } from "../ids.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { Requester } from "../requester.ts";
import { type CollectedId, collectedSchema, fieldErrors } from "./collected-schema.ts";

/** A field of the buyer's data as wallets send it. Every value is a string, also that of the consent. */
export type CollectedField = { id: string; value: string };

let compiled: ValidateFunction | undefined;

/** Returns the validation of the schema, compiled once: most processes never need it, and it takes a tenth of their start. */
function openValidation(): ValidateFunction {
  if (compiled) return compiled;
  const ajv = new Ajv2020({ allErrors: true });
  formats.default(ajv);
  compiled = ajv.compile(collectedSchema);
  return compiled;
}

/** The highest age that a date of birth may give, years. */
const OLDEST = 130;

/**
 * Validates buyer data against the schema, and the date of birth against `OLDEST`. Returns the error, which names the
 * field and never its value, or undefined.
 */
function validateCollectedData(fields: readonly CollectedField[], now: Date): string | undefined {
  const where = (id: string, what: string) => `collectedData.fields.${id}: ${what}`;
  const ids = fields.map(({ id }) => id);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index && isCollectedId(id));
  if (twice) return where(twice, "is given twice");
  const data = Object.fromEntries(
    fields.map(({ id, value }) => [id, id === "tosConfirmed" && value === "true" ? true : value]),
  );
  const validate = openValidation();
  if (!validate(data)) return describe(validate.errors?.[0], where);
  const born = new Date(`${data["dob"]}T00:00:00Z`);
  const years = now.getUTCFullYear() - born.getUTCFullYear();
  return born > now || years > OLDEST ? where("dob", fieldErrors.dob) : undefined;
}

const isCollectedId = (id: string): id is CollectedId => Object.hasOwn(fieldErrors, id);

function describe(error: ErrorObject | undefined, where: (id: string, what: string) => string): string {
  const id = error?.instancePath.slice(1) ?? "";
  if (isCollectedId(id)) return where(id, fieldErrors[id]);
  const missing: unknown = error?.params["missingProperty"];
  if (typeof missing === "string" && error?.schemaPath === "#/required") return where(missing, "is missing");
  if (error?.keyword === "additionalProperties") return "collectedData.fields: holds an id that is not asked for";
  return "collectedData.fields: expected pobCountry and pobAddress, or porCountry and porAddress";
}

/** Retention of data that no signature proves, after the payment's deadline, milliseconds. */
const UNPROVEN_MS = 24 * 60 * 60_000;

/** The api can encrypt buyer data and cannot read it. */
export type BuyerDataDeps = Pick<PaymentDeps, "db" | "now"> & { encryptBuyerData: Encrypt };

type EncryptedFields = Pick<CollectedRow, "key_id" | "ciphertext">;
/** Buyer data that a requester has given. `keepMs` is its retention, milliseconds. */
type GivenData = { requester: Requester; encrypted: EncryptedFields; keepMs: number };

async function encryptFields(
  { encryptBuyerData }: Pick<BuyerDataDeps, "encryptBuyerData">,
  option: OptionRow,
  fields: readonly CollectedField[],
): Promise<EncryptedFields> {
  const { keyId, ciphertext } = await encryptBuyerData(JSON.stringify(fields), toContext(postedFor(option)));
  return { key_id: keyId, ciphertext };
}

/**
 * Binds buyer data to its payment and account. It is not bound to its row: a confirm copies posted data to the attempt, and
 * the api that copies it cannot decrypt it.
 */
const toContext = ({ payment_id, account }: Pick<CollectedRow, "payment_id" | "account">) => `${payment_id} ${account}`;

const postedFor = (option: OptionRow) => ({ payment_id: option.payment_id, account: payerOf(option) });

function toRow(
  { now }: Pick<PaymentDeps, "now">,
  args: { option: OptionRow; deadline: Date; encrypted: EncryptedFields; keepMs: number },
) {
  const { option, deadline, encrypted, keepMs } = args;
  const at = now();
  const id = newId("cdat", at);
  const keep_until = new Date(at.getTime() + keepMs);
  const unproven = new Date(deadline.getTime() + UNPROVEN_MS);
  const delete_at = unproven < keep_until ? unproven : keep_until;
  return { id, ...postedFor(option), ...encrypted, created_at: at, delete_at, keep_until };
}

/** Buyer data that a wallet sends with a confirm. `keepMs` is its retention, milliseconds. */
export type CollectedData = { fields: readonly CollectedField[]; keepMs: number };

/**
 * Returns the buyer data of a confirm, encrypted, or else what its requester has posted before; undefined without either.
 * Refuses invalid data with `invalid_params` naming the field.
 */
export async function findGivenData(
  deps: BuyerDataDeps,
  option: OptionRow,
  { requester, collected }: { requester: Requester; collected?: CollectedData | undefined },
): Promise<Result<GivenData | undefined>> {
  if (collected) {
    const error = validateCollectedData(collected.fields, deps.now());
    if (error) return refuse("invalid_params", error);
    const encrypted = await encryptFields(deps, option, collected.fields);
    return done({ requester, encrypted, keepMs: collected.keepMs });
  }
  // It was validated when it was posted.
  const posted = await findPostedData(deps.db, postedBy(requester, option));
  if (!posted) return done(undefined);
  const { key_id, ciphertext, keep_until: until, created_at: since } = posted;
  return done({ requester, encrypted: { key_id, ciphertext }, keepMs: until.getTime() - since.getTime() });
}

/**
 * Attaches data to an attempt. The attempt's signature then proves the data as well, and data from other requesters
 * cannot replace it. The hash of a push proves no identity, because it is public, so a push keeps the data of each
 * requester.
 */
export async function attachData(
  deps: Pick<PaymentDeps, "now"> & { db: Db },
  args: { attemptId: string; option: OptionRow; deadline: Date; given: GivenData; isProof?: boolean },
): Promise<void> {
  const { attemptId, option, deadline, given, isProof = option.kind !== "push" } = args;
  const row = toRow(deps, { option, deadline, ...given });
  const requester = isProof ? "" : given.requester.name;
  await attachToAttempt(deps.db, { ...row, attempt_id: attemptId, requester });
}

/** Returns true when this requester has posted data for this payer and payment. */
async function hasPosted(db: Db, requester: Requester, option: OptionRow): Promise<boolean> {
  return (await findPostedData(db, postedBy(requester, option))) !== undefined;
}

const postedBy = (requester: Requester, option: OptionRow) => ({
  paymentId: option.payment_id,
  account: payerOf(option),
  requester: requester.name,
});

/** Returns the paying account in one spelling. */
export const payerOf = ({ chain, payer }: Pick<OptionRow, "chain" | "payer">) => `${chain}:${payer}`;

type Asked = { paymentId: string; mode: Mode; optionId: string; requester: Requester };

/**
 * Reports whether this requester has given the buyer data that an option needs. Refuses with `payment_not_found` (also
 * for an option of another payment), and `invalid_state` when no data is needed or the payment no longer waits.
 */
export async function findDataStatus(deps: Pick<PaymentDeps, "db">, args: Asked): Promise<Result<{ given: boolean }>> {
  const found = await findAsking(deps, args);
  return found.ok ? done({ given: await hasPosted(deps.db, args.requester, found.value.option) }) : found;
}

async function findAsking(deps: Pick<PaymentDeps, "db">, args: Omit<Asked, "requester">) {
  const payment = await findPayment(deps.db, args);
  const option = payment && (await findOption(deps.db, { id: args.optionId, paymentId: payment.id }));
  if (!option) return refuse("payment_not_found", "no such payment");
  if (payment.state !== "requires_action") return refuse("invalid_state", `the payment is ${payment.state}`);
  if (!option.needs_data) return refuse("invalid_state", "this option needs no data");
  return done({ option, deadline: payment.expires_at });
}

/**
 * Stores buyer data ahead of the confirm, as the data page does. A later confirm of the same requester needs no data
 * for that account. A second post replaces this requester's earlier data and never another requester's. The data
 * becomes final with an attempt whose signature is verified. Refuses like `findDataStatus`, and with `invalid_params` naming
 * the field.
 */
export async function storeCollected(
  deps: BuyerDataDeps,
  args: Asked & { fields: readonly CollectedField[]; keepMs: number },
): Promise<Result<object>> {
  const asked = await findAsking(deps, args);
  if (!asked.ok) return asked;
  const error = validateCollectedData(args.fields, deps.now());
  if (error) return refuse("invalid_params", error);
  const encrypted = await encryptFields(deps, asked.value.option, args.fields);
  const row = toRow(deps, { ...asked.value, encrypted, keepMs: args.keepMs });
  await upsertPostedData(deps.db, { ...row, requester: args.requester.name });
  return done({});
}

/** Data of a payment's buyer. `proven`: it came with the payer's verified signature. */
export type CollectedView = { account: string; fields: CollectedField[]; proven: boolean; deleteAt: Date };

/**
 * Returns the stored buyer data of a payment, decrypted, for an operator who has to disclose it. If the verified
 * attempt proves data, returns only that. Otherwise returns the data that came with the verified attempt (a push proves
 * no identity), or else all data that was posted or sent.
 */
export async function readCollected(
  deps: Pick<PaymentDeps, "db"> & { decryptBuyerData: Decrypt },
  paymentId: string,
): Promise<CollectedView[]> {
  const rows = await listCollected(deps.db, paymentId);
  const verified = rows.filter(({ attempt_state: state }) => state === "verified");
  const isProven = (row: (typeof rows)[number]) => row.attempt_state === "verified" && row.requester === "";
  const proven = rows.filter(isProven);
  const best = proven.length > 0 ? proven : verified.length > 0 ? verified : rows;
  return Promise.all(
    best.map(async (row) => ({
      account: row.account,
      fields: JSON.parse(await deps.decryptBuyerData({ ...row, keyId: row.key_id }, toContext(row))),
      proven: isProven(row),
      deleteAt: row.delete_at,
    })),
  );
}
