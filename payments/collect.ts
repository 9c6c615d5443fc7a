import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { type CollectedRow, findPosted, listCollected, putOnAttempt, upsertPosted } from "../db/collected.ts";
import { findOption, type OptionRow } from "../db/options.ts";
import { findPayment } from "../db/payments.ts";
import type { Db, Mode } from "../db/tables.ts";
import { type CollectedId, collectedSchema, expected } from "./collected-schema.ts";
import type { PaymentDeps } from "./deps.ts";
import { done, type Result, refuse } from "./errors.ts";
import { newId } from "./ids.ts";
import type { Requester } from "./requester.ts";

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

/** So long after the deadline what nobody's signature has proved is kept, milliseconds. */
const UNPROVEN_MS = 24 * 60 * 60_000;

type Keep = { requester: Requester; fields: readonly CollectedField[]; keepMs: number };

function toRow(
  { sealer, now }: Pick<PaymentDeps, "sealer" | "now">,
  { option, deadline, fields, keepMs }: { option: OptionRow; deadline: Date; fields: unknown; keepMs: number },
) {
  const id = newId("cdat");
  const { keyId: key_id, sealed } = sealer.seal(JSON.stringify(fields), id);
  const at = now();
  const keep_until = new Date(at.getTime() + keepMs);
  const unproven = new Date(deadline.getTime() + UNPROVEN_MS);
  const delete_at = unproven < keep_until ? unproven : keep_until;
  const account = payerOf(option);
  return { id, payment_id: option.payment_id, account, key_id, sealed, created_at: at, delete_at, keep_until };
}

/** Returns what a confirm brings of its buyer's data, or what its requester has posted before; undefined for neither. */
export async function findGiven(
  deps: Pick<PaymentDeps, "db" | "sealer">,
  option: OptionRow,
  { requester, collected }: { requester: Requester; collected?: Omit<Keep, "requester"> | undefined },
): Promise<Keep | undefined> {
  if (collected) return { ...collected, requester };
  const posted = await findPosted(deps.db, postedBy(requester, option));
  if (!posted) return undefined;
  const keepMs = posted.keep_until.getTime() - posted.created_at.getTime();
  return { requester, fields: openFields(deps, posted), keepMs };
}

/**
 * Makes data part of an attempt: what its signature proves then holds for the data too, and nothing that others post
 * reaches it. The hash of a push proves nobody, because everyone can read it: there the data of each requester is kept.
 */
export async function keepWithAttempt(
  deps: Pick<PaymentDeps, "sealer" | "now"> & { db: Db },
  args: { attemptId: string; option: OptionRow; deadline: Date; given: Keep; isProof?: boolean },
): Promise<void> {
  const { attemptId, option, deadline, given, isProof = option.kind !== "push" } = args;
  const row = toRow(deps, { option, deadline, ...given });
  const requester = isProof ? "" : given.requester.name;
  await putOnAttempt(deps.db, { ...row, attempt_id: attemptId, requester });
}

/** True when this requester has posted what was asked for this payer and payment. */
async function hasPosted(db: Db, requester: Requester, option: OptionRow): Promise<boolean> {
  return (await findPosted(db, postedBy(requester, option))) !== undefined;
}

const postedBy = (requester: Requester, option: OptionRow) => ({
  paymentId: option.payment_id,
  account: payerOf(option),
  requester: requester.name,
});

const openFields = ({ sealer }: Pick<PaymentDeps, "sealer">, { id, key_id: keyId, sealed }: CollectedRow) =>
  JSON.parse(sealer.open({ keyId, sealed }, id)) as CollectedField[];

/** One spelling of the account that pays. */
export const payerOf = ({ chain, payer }: Pick<OptionRow, "chain" | "payer">) => `${chain}:${payer}`;

type Asked = { paymentId: string; mode: Mode; optionId: string; requester: Requester };

/**
 * Whether an option's buyer still has to give data to this requester. Refuses with `payment_not_found` (also for an option
 * that is none of the payment's), and `invalid_state` where nothing is asked any more.
 */
export async function findAsked(deps: Pick<PaymentDeps, "db">, args: Asked): Promise<Result<{ given: boolean }>> {
  const found = await findAsking(deps, args);
  return found.ok ? done({ given: await hasPosted(deps.db, args.requester, found.value.option) }) : found;
}

async function findAsking(deps: Pick<PaymentDeps, "db">, args: Omit<Asked, "requester">) {
  const payment = await findPayment(deps.db, { id: args.paymentId, mode: args.mode });
  const option = payment && (await findOption(deps.db, { id: args.optionId, paymentId: payment.id }));
  if (!option) return refuse("payment_not_found", "no such payment");
  if (payment.state !== "requires_action") return refuse("invalid_state", `the payment is ${payment.state}`);
  if (!option.needs_data) return refuse("invalid_state", "this option needs no data");
  return done({ option, deadline: payment.expires_at });
}

/**
 * Takes the data ahead of the confirm, as a page for buyers does: afterwards a confirm of the same requester needs none for
 * that account. Posted again it replaces what this requester posted before, and never what another one did. It becomes
 * final with an attempt whose signature is verified. Refuses like findAsked, and with `invalid_params` naming the field.
 */
export async function storeCollected(
  deps: Pick<PaymentDeps, "db" | "sealer" | "now">,
  args: Asked & { fields: readonly CollectedField[]; keepMs: number },
): Promise<Result<object>> {
  const asked = await findAsking(deps, args);
  if (!asked.ok) return asked;
  const fault = findCollectedFault(args.fields, deps.now());
  if (fault) return refuse("invalid_params", fault);
  await upsertPosted(deps.db, { ...toRow(deps, { ...asked.value, ...args }), requester: args.requester.name });
  return done({});
}

/** Data of a payment's buyer. `proven`: the payer's verified signature came with it. */
export type CollectedView = { account: string; fields: CollectedField[]; proven: boolean; deleteAt: Date };

/**
 * Returns what is kept of a payment's buyer, opened: for an operator who has to answer for it. What the verified attempt
 * proves, alone; else what came with it (a push, which proves nobody); else everything that anyone has posted or sent.
 */
export async function readCollected(
  deps: Pick<PaymentDeps, "db" | "sealer">,
  paymentId: string,
): Promise<CollectedView[]> {
  const rows = await listCollected(deps.db, paymentId);
  const verified = rows.filter(({ attempt_state: state }) => state === "verified");
  const isProven = ({ requester }: CollectedRow) => requester === "";
  const proven = verified.filter(isProven);
  const best = proven.length > 0 ? proven : verified.length > 0 ? verified : rows;
  return best.map((row) => ({
    account: row.account,
    fields: openFields(deps, row),
    proven: proven.includes(row as (typeof proven)[number]),
    deleteAt: row.delete_at,
  }));
}
